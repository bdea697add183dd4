// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/rows.h"
#include "backend/gpu/kernels/top.h"

JUNO_ROW_KERNELS(JUNO_DEFINE_KERNEL)
