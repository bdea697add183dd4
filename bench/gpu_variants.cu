// SPDX-License-Identifier: Apache-2.0
// Matrix-vector kernels with loads that run a different number of steps ahead: what gpu_kernels.cu compares.
#include "backend/gpu/kernels/matvec.h"

namespace juno::gpu {

#define AHEAD(format, block, depth)                             \
  JUNO_GPU void ahead_##format##_##depth(const MatvecArgs& a) { \
    matvec<quant::List<quant::format>, block, 1, depth>(a);     \
  }
#define AHEAD_ALL(format, block) \
  AHEAD(format, block, 1) AHEAD(format, block, 2) AHEAD(format, block, 3) AHEAD(format, block, 4)
AHEAD_ALL(Q4_K, 128)
AHEAD_ALL(Q6_K, 128)
AHEAD_ALL(Q8_0, 0)

}  // namespace juno::gpu

#define DEFINE(format)                                       \
  JUNO_DEFINE_KERNEL(ahead_##format##_1, MatvecArgs, 512, 1) \
  JUNO_DEFINE_KERNEL(ahead_##format##_2, MatvecArgs, 512, 1) \
  JUNO_DEFINE_KERNEL(ahead_##format##_3, MatvecArgs, 256, 1) \
  JUNO_DEFINE_KERNEL(ahead_##format##_4, MatvecArgs, 256, 1)
DEFINE(Q4_K)
DEFINE(Q6_K)
DEFINE(Q8_0)
