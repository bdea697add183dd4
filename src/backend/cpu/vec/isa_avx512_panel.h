// SPDX-License-Identifier: Apache-2.0
// The words of panels (panel.h) for AVX-512 with VNNI: sixteen weight rows side by side, 32 bits of each.
#pragma once
#include "backend/cpu/vec/isa_avx512.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#define JUNO_PANELS 1

namespace juno::cpu {
namespace {

inline constexpr int kPanelRows = 16;
inline constexpr int kPanelTokens = 8;    // whose sums the registers hold
inline constexpr int kPairTokens = 6;     // that meet two panels at a time
inline constexpr int kPanelOffset = 128;  // signed bytes are stored with so much added
inline constexpr bool kWideParts = true;  // add_four's sums are of 32 bits
template <bool kSigned, int kLargest>
inline constexpr int kPanelRun = 128;  // elements of a sum before it must be folded

// 16 bytes of each of the rows at w, stride apart: dword i of all to[i].
JUNO_BOTH void turn4(const uint8_t* w, int64_t stride, Bytes* to) {
  const auto at = [&](int64_t row) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + row * stride));
  };
  Bytes r[4], pairs[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_castsi128_si512(at(i));
    r[i] = _mm512_mask_broadcast_i32x4(r[i], 0x00f0, at(i + 4));
    r[i] = _mm512_mask_broadcast_i32x4(r[i], 0x0f00, at(i + 8));
    r[i] = _mm512_mask_broadcast_i32x4(r[i], 0xf000, at(i + 12));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    pairs[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    pairs[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    to[2 * i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    to[2 * i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
  }
}

JUNO_BOTH Ints plus(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
JUNO_BOTH Ints all_ints(int x) { return _mm512_set1_epi32(x); }
template <int kBits>
JUNO_BOTH Ints down32(Ints v) {
  return _mm512_srli_epi32(v, kBits);
}
template <int kBits>
JUNO_BOTH Ints up32(Ints v) {
  return _mm512_slli_epi32(v, kBits);
}
// 16 in byte i of a row where bit 4 * kNumber + i of its dword is set.
template <int kNumber>
JUNO_BOTH Bytes fifth_bits(Ints bits) {
  constexpr int kByte = kNumber / 2 * 0x01010101;
  const Bytes spread = _mm512_shuffle_epi8(
      bits,
      _mm512_add_epi8(_mm512_set1_epi32(kByte), _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0)));
  const __mmask64 set =
      _mm512_test_epi8_mask(spread, all_ints(kNumber % 2 ? static_cast<int>(0x80402010u) : 0x08040201));
  return _mm512_maskz_mov_epi8(set, all_bytes(16));
}
JUNO_BOTH Floats low_half(Ints v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
JUNO_BOTH Floats high_half(Ints v) { return low_half(_mm512_srli_epi32(v, 16)); }

// Sub-scales are floats: their products with sums are exact in them too.
using Scale = Floats;
using Whole = Floats;  // the sum of a unit
JUNO_BOTH Scale load_scale(const void* p) { return _mm512_loadu_ps(p); }
JUNO_BOTH void store_scale(void* p, Scale s) { _mm512_storeu_ps(p, s); }
template <int kByte, bool kSigned>
JUNO_BOTH Scale scale_of(Ints bytes) {
  if constexpr (kSigned)
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(bytes, 24 - 8 * kByte), 24));
  else return _mm512_cvtepi32_ps(both_bits(_mm512_srli_epi32(bytes, 8 * kByte), all_ints(255)));
}
// Bytes 2 * kPair and the next as 16 bits, times 2^kShift.
template <int kPair, bool kSigned, int kShift>
JUNO_BOTH Bytes pair_of(Ints bytes) {
  const Bytes high =
      both_bits(kPair ? bytes : _mm512_slli_epi32(bytes, 16), all_ints(static_cast<int>(0xff000000u)));
  const Bytes low =
      both_bits(kPair ? _mm512_srli_epi32(bytes, 8) : _mm512_slli_epi32(bytes, 8), all_ints(0xff00));
  const Bytes both = either_bits(high, low);
  if constexpr (kSigned) return _mm512_srai_epi16(both, 8 - kShift);
  else return _mm512_srli_epi16(both, 8 - kShift);
}

JUNO_BOTH Ints same_four(const void* p) { return all_ints(four_at(p)); }
// sum + four bytes of each row times the four at x.
template <bool kSigned>
JUNO_BOTH Ints add_four(Ints sum, Bytes w, const void* x) {
  return _mm512_dpbusd_epi32(sum, w, same_four(x));
}
JUNO_BOTH Ints add_pair(Ints sum, Bytes w, const void* x) {
  return _mm512_dpwssd_epi32(sum, w, same_four(x));
}
JUNO_BOTH Whole no_whole() { return _mm512_setzero_ps(); }
template <bool kScaled, bool kOnce, int kWidth>
JUNO_BOTH Whole fold(Whole whole, Ints part, const void* scale) {
  if constexpr (kScaled) return _mm512_fmadd_ps(load_scale(scale), _mm512_cvtepi32_ps(part), whole);
  else if constexpr (kOnce) return _mm512_cvtepi32_ps(part);
  else return _mm512_add_ps(_mm512_cvtepi32_ps(part), whole);
}
JUNO_BOTH Floats value_of(Whole whole) { return whole; }
JUNO_BOTH void store_panel(float* y, const float* sums, int skip, int rows) {
  const auto mask = static_cast<__mmask16>((1u << rows) - 1);
  _mm512_mask_storeu_ps(y, mask, _mm512_maskz_loadu_ps(mask, sums + skip));
}

}  // namespace
}  // namespace juno::cpu

#endif
