// SPDX-License-Identifier: Apache-2.0
// The words of panels (panel.h) for AVX-VNNI: those of AVX2, with sums of four products in 32 bits.
#pragma once
#include "backend/cpu/vec/isa_avx2_panel.h"
#include "backend/cpu/vec/isa_avxvnni.h"

#if defined(__AVXVNNI__)

namespace juno::cpu {
namespace {

inline constexpr int kPairTokens = 0;     // that meet two panels at a time: none
inline constexpr int kPanelOffset = 128;  // signed bytes are stored with so much added
inline constexpr bool kWideParts = true;  // add_four's sums are of 32 bits
template <bool kSigned, int kLargest>
inline constexpr int kPanelRun = 128;  // elements of a sum before it must be folded

// Sub-scales are floats: their products with sums are exact in them too.
using Scale = Floats;
using Whole = Floats;  // the sum of a unit
JUNO_BOTH Scale load_scale(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
JUNO_BOTH void store_scale(void* p, Scale s) { _mm256_storeu_ps(static_cast<float*>(p), s); }
template <int kByte, bool kSigned>
JUNO_BOTH Scale scale_of(Ints bytes) {
  const Ints top = _mm256_slli_epi32(bytes, 24 - 8 * kByte);
  return _mm256_cvtepi32_ps(kSigned ? _mm256_srai_epi32(top, 24) : _mm256_srli_epi32(top, 24));
}

// sum + four bytes of each row times the four at x.
template <bool kSigned>
JUNO_BOTH Ints add_four(Ints sum, Bytes w, const void* x) {
  return dot_unsigned(sum, w, same_four(x));
}
JUNO_BOTH Ints add_pair(Ints sum, Bytes w, const void* x) {
  return _mm256_dpwssd_avx_epi32(sum, w, same_four(x));
}
JUNO_BOTH Whole no_whole() { return _mm256_setzero_ps(); }
template <bool kScaled, bool kOnce, int kWidth>
JUNO_BOTH Whole fold(Whole whole, Ints part, const void* scale) {
  if constexpr (kScaled) return _mm256_fmadd_ps(load_scale(scale), _mm256_cvtepi32_ps(part), whole);
  else if constexpr (kOnce) return _mm256_cvtepi32_ps(part);
  else return _mm256_add_ps(_mm256_cvtepi32_ps(part), whole);
}
JUNO_BOTH Floats value_of(Whole whole) { return whole; }

}  // namespace
}  // namespace juno::cpu

#endif
