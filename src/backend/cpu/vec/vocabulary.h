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

#if defined(JUNO_PANELS) && !defined(JUNO_WIDE)
#include <cstddef>

namespace juno::cpu {
namespace {

// Four elements of each row of a panel, kWidth bytes each, as add_four takes them.
template <bool kSigned>
inline constexpr int kWidest = 1;
template <int kWidth>
using Quad = Bytes;
template <int kWidth>
JUNO_BOTH Bytes quad_of(Bytes v) {
  return v;
}
template <int kWidth>
JUNO_BOTH Bytes load_quad(const std::byte* p) {
  return load_bytes(p);
}
JUNO_BOTH void store_quad(std::byte* p, Bytes v) { store_bytes(p, v); }

}  // namespace
}  // namespace juno::cpu
#endif
