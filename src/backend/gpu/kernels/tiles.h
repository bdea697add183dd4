// SPDX-License-Identifier: Apache-2.0
// The words of the many-token kernels, of the vendor this text is being compiled for.
#pragma once
#ifdef __CUDACC__
#include "backend/gpu/cuda/tiles.h"
#else
#include "backend/gpu/host/tiles.h"
#endif
