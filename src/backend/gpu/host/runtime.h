// SPDX-License-Identifier: Apache-2.0
// The CPU as a GPU: the same kernels, their threads as fibres. Slow; it is there to test everything but
// speed.
#pragma once
#include <memory>

#include "backend/gpu/runtime.h"

namespace juno::gpu::host {

std::unique_ptr<Runtime> make_runtime();

}  // namespace juno::gpu::host
