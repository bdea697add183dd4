// SPDX-License-Identifier: Apache-2.0
// The words that the kernels are written in, of the instruction set that is compiled for. Lanes: sixteen
// floats. Bytes, Ints, Floats, where JUNO_PANELS is defined: 32 bits of each of kPanelRows weight rows.
#pragma once
#if defined(__AMX_INT8__)
#include "backend/cpu/vec/isa_amx.h"
#elif defined(__AVX512VNNI__) && defined(__AVX512BW__)
#include "backend/cpu/vec/isa_avx512_panel.h"
#elif defined(__AVXVNNI__)
#include "backend/cpu/vec/isa_avxvnni_panel.h"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "backend/cpu/vec/isa_avx2_panel.h"
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#include "backend/cpu/vec/isa_i8mm.h"
#elif defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#include "backend/cpu/vec/isa_neon_panel.h"
#else
#include "backend/cpu/vec/isa_baseline.h"
#endif
