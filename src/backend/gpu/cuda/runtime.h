// SPDX-License-Identifier: Apache-2.0
// An NVIDIA GPU through its driver library.
#pragma once
#include "backend/gpu/runtime.h"

namespace juno::gpu::cuda {

// index: of the driver's devices. Fails with Code::kDevice, saying why: no driver, no such device, kernels
// that are not built in, are damaged, or have no code for this device.
Result<std::unique_ptr<Runtime>> open_runtime(int index);

}  // namespace juno::gpu::cuda
