// SPDX-License-Identifier: Apache-2.0
// Opens the GPU backends: an NVIDIA GPU, or the CPU playing one.
#pragma once
#include <memory>

#include "ops/executor.h"

namespace juno::gpu {

// index: of the driver's GPUs. Fails with Code::kDevice and the reason when it cannot be used.
Result<std::unique_ptr<ops::Executor>> open_cuda(int index, ops::Activations activations);
Result<std::unique_ptr<ops::Executor>> open_host(ops::Activations activations);

// Of the CUDA kernels inside this program; "" when there are none.
std::string_view cuda_kernels_sha256();

}  // namespace juno::gpu
