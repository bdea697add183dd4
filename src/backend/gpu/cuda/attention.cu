// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/list.h"

JUNO_ATTENTION_KERNELS(JUNO_DEFINE_KERNEL)
