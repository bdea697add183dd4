// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernels/matvec.h"

JUNO_MATVEC_256_1_KERNELS(JUNO_DEFINE_KERNEL)
