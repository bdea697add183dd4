// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/many_float.h"

JUNO_MANY_FLOAT_KERNELS(JUNO_DEFINE_KERNEL)
