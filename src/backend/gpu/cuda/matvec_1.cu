// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernels/matvec.h"

<<<<<<<< HEAD:src/backend/gpu/cuda/matvec_few.cu
JUNO_MATVEC_FEW_KERNELS(JUNO_DEFINE_KERNEL)
========
#include "backend/gpu/kernels/list.h"

JUNO_MATVEC_1_KERNELS(JUNO_DEFINE_KERNEL)
>>>>>>>> gpukern:src/backend/gpu/cuda/matvec_1.cu
