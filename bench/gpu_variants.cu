// SPDX-License-Identifier: Apache-2.0
// matvec_1 with loads that run a different number of steps ahead, for a few formats: what gpu_kernels.cu
// compares.
#include "backend/gpu/kernels/matvec.h"

namespace juno::gpu {

using Few = quant::List<quant::Q4_K, quant::Q6_K, quant::Q8_0>;
JUNO_GPU void ahead_1(const MatvecArgs& a) { matvec<1, 1, Few>(a); }
JUNO_GPU void ahead_2(const MatvecArgs& a) { matvec<1, 2, Few>(a); }
JUNO_GPU void ahead_3(const MatvecArgs& a) { matvec<1, 3, Few>(a); }
JUNO_GPU void ahead_4(const MatvecArgs& a) { matvec<1, 4, Few>(a); }
JUNO_GPU void ahead_6(const MatvecArgs& a) { matvec<1, 6, Few>(a); }

}  // namespace juno::gpu

JUNO_DEFINE_KERNEL(ahead_1, MatvecArgs, 512, 1)
JUNO_DEFINE_KERNEL(ahead_2, MatvecArgs, 512, 1)
JUNO_DEFINE_KERNEL(ahead_3, MatvecArgs, 512, 1)
JUNO_DEFINE_KERNEL(ahead_4, MatvecArgs, 512, 1)
JUNO_DEFINE_KERNEL(ahead_6, MatvecArgs, 512, 1)
