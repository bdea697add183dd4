// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/open.h"

#include "backend/gpu/cuda/image.h"
#include "backend/gpu/cuda/runtime.h"
#include "backend/gpu/gpu_ops.h"
#include "backend/gpu/host/runtime.h"
#include "backend/gpu/prove.h"

namespace juno::gpu {

Result<std::unique_ptr<ops::Executor>> open_cuda(int index, ops::Activations activations) {
  return guard([&]() -> std::unique_ptr<ops::Executor> {
    auto ops = std::make_unique<GpuOps>("cuda", take(cuda::open_runtime(index)), activations);
    prove(*ops);
    return ops;
  });
}

Result<std::unique_ptr<ops::Executor>> open_host(ops::Activations activations) {
  return std::make_unique<GpuOps>("gpu-host", host::make_runtime(), activations);
}

std::string_view cuda_kernels_sha256() { return cuda::kernel_image().sha256; }

}  // namespace juno::gpu
