// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernels/matvec.h"

#include "backend/gpu/kernels/list.h"

JUNO_MATVEC_1_KERNELS(JUNO_DEFINE_KERNEL)
