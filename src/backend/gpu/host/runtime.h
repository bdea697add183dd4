// SPDX-License-Identifier: Apache-2.0
// The CPU as a GPU: the same kernels, their threads as fibres. Slow; it is there to test everything but
// speed.
#pragma once
#include <memory>

#include "backend/gpu/runtime.h"

namespace juno::gpu::host {

// With few blocks, as nothing runs side by side.
inline constexpr Chip kChip{.multiprocessors = 4, .product_warps = 2};
std::unique_ptr<Runtime> make_runtime(const Chip& chip = kChip);

}  // namespace juno::gpu::host
