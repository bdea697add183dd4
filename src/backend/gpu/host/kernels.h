// SPDX-License-Identifier: Apache-2.0
// The kernels as the host vendor runs them.
#pragma once
#include "backend/gpu/host/fibres.h"

namespace juno::gpu::host {

// Runs a launch to its end on this thread; the tensors it names lie in host memory. Throws Error.
void run(const Launch& launch, Order order = Order::kForward);

}  // namespace juno::gpu::host
