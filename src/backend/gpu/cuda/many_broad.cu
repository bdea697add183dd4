// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/prompt.h"

JUNO_MANY_BROAD_KERNELS(JUNO_DEFINE_KERNEL)
