// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the vendor this text is being compiled for.
#pragma once
#ifdef __CUDACC__
#include "backend/gpu/cuda/gpu.h"
#else
#include "backend/gpu/host/gpu.h"
#endif
