// SPDX-License-Identifier: Apache-2.0
// The words of panels (panel.h) for AVX2: eight weight rows side by side, 32 bits of each.
#pragma once
#include "backend/cpu/vec/isa_avx2.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define JUNO_PANELS 1

namespace juno::cpu {
namespace {

inline constexpr int kPanelRows = 8;
inline constexpr int kPanelTokens = 4;

JUNO_BOTH void turn4(const uint8_t* w, int64_t stride, Bytes* to) {
  const auto at = [&](int64_t row) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + row * stride));
  };
  Bytes r[4], pairs[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(at(i)), at(i + 4), 1);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    pairs[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    to[2 * i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
    to[2 * i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
  }
}

JUNO_BOTH Ints plus(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
JUNO_BOTH Ints all_ints(int x) { return _mm256_set1_epi32(x); }
template <int kBits>
JUNO_BOTH Ints down32(Ints v) {
  return _mm256_srli_epi32(v, kBits);
}
template <int kBits>
JUNO_BOTH Ints up32(Ints v) {
  return _mm256_slli_epi32(v, kBits);
}
template <int kNumber>
JUNO_BOTH Bytes fifth_bits(Ints bits) {
  constexpr int kByte = kNumber / 2 * 0x01010101;
  const Bytes spread = _mm256_shuffle_epi8(
      bits, _mm256_setr_epi32(kByte, kByte + 0x04040404, kByte + 0x08080808, kByte + 0x0c0c0c0c, kByte,
                              kByte + 0x04040404, kByte + 0x08080808, kByte + 0x0c0c0c0c));
  const Bytes own = all_ints(kNumber % 2 ? static_cast<int>(0x80402010u) : 0x08040201);
  return both_bits(_mm256_cmpeq_epi8(both_bits(spread, own), own), all_bytes(16));
}
JUNO_BOTH Floats low_half(Ints v) { return widen_dwords(both_bits(v, all_ints(0xffff))); }
JUNO_BOTH Floats high_half(Ints v) { return widen_dwords(_mm256_srli_epi32(v, 16)); }

template <int kFirst, int kSecond, bool kSigned, int kShift>
JUNO_BOTH Bytes as_shorts(Ints bytes) {
  constexpr int kIndex = static_cast<int>(0x00800080u | kFirst << 8 | static_cast<unsigned>(kSecond) << 24);
  const Bytes both = _mm256_shuffle_epi8(
      bytes, _mm256_setr_epi32(kIndex, kIndex + 0x04000400, kIndex + 0x08000800, kIndex + 0x0c000c00, kIndex,
                               kIndex + 0x04000400, kIndex + 0x08000800, kIndex + 0x0c000c00));
  if constexpr (kSigned) return _mm256_srai_epi16(both, 8 - kShift);
  else return _mm256_srli_epi16(both, 8 - kShift);
}
template <int kPair, bool kSigned, int kShift>
JUNO_BOTH Bytes pair_of(Ints bytes) {
  return as_shorts<2 * kPair, 2 * kPair + 1, kSigned, kShift>(bytes);
}

JUNO_BOTH Ints same_four(const void* p) { return all_ints(four_at(p)); }
// A masked store is a few dozen operations on AMD processors before AVX-512.
JUNO_BOTH void store_panel(float* y, const float* sums, int skip, int rows) {
  if (rows == kPanelRows) return _mm256_storeu_ps(y, _mm256_loadu_ps(sums));
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(rows), lanes);
  _mm256_maskstore_ps(y, mask, _mm256_maskload_ps(sums + skip, mask));
}

#if !defined(__AVXVNNI__)  // isa_avxvnni_panel.h has better words for these

inline constexpr int kPairTokens = 4;  // that meet two panels at a time
inline constexpr int kPanelOffset = 0;
inline constexpr bool kWideParts = false;  // of 16: a run of products only
// Elements of a sum before it must be folded: products of bytes add up in 16 bits.
template <bool kSigned, int kLargest>
inline constexpr int kPanelRun = kSigned || kLargest * 2 * 127 * 2 > 32767 ? 4
                                 : kLargest * 2 * 127 * 4 > 32767          ? 8
                                 : kLargest * 2 * 127 * 8 > 32767          ? 16
                                                                           : 32;

// Signed weights that meet several activations, and these, are 16 bits wide: elements 0 and 2 of four, then
// 1 and 3. Their products add up in 32 bits, and no sign is moved.
#define JUNO_WIDE 1
template <bool kSigned>
inline constexpr int kWidest = kSigned ? 2 : 1;
struct Shorts4 {
  Bytes even, odd;
};
template <int kWidth>
struct QuadOf {
  using Type = Bytes;
};
template <>
struct QuadOf<2> {
  using Type = Shorts4;
};
template <int kWidth>
using Quad = typename QuadOf<kWidth>::Type;
template <int kWidth>
JUNO_BOTH Quad<kWidth> quad_of(Bytes v) {
  if constexpr (kWidth == 2) return {_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)};
  else return v;
}
template <int kWidth>
JUNO_BOTH Quad<kWidth> load_quad(const std::byte* p) {
  if constexpr (kWidth == 2) return {load_bytes(p), load_bytes(p + sizeof(Bytes))};
  else return load_bytes(p);
}
JUNO_BOTH void store_quad(std::byte* p, Bytes v) { store_bytes(p, v); }
JUNO_BOTH void store_quad(std::byte* p, Shorts4 v) {
  store_bytes(p, v.even);
  store_bytes(p + sizeof(Bytes), v.odd);
}
// 32 integers of activations.
JUNO_BOTH void widen32(const int8_t* q, std::byte* to) {
  const Shorts4 v = quad_of<2>(load_bytes(q));
  const Bytes low = _mm256_unpacklo_epi32(v.even, v.odd), high = _mm256_unpackhi_epi32(v.even, v.odd);
  store_bytes(to, _mm256_permute2x128_si256(low, high, 0x20));
  store_bytes(to + sizeof(Bytes), _mm256_permute2x128_si256(low, high, 0x31));
}

// Sub-scales are 16 bits, in both halves.
using Scale = Bytes;
using Whole = Ints;
JUNO_BOTH Scale load_scale(const void* p) { return load_bytes(p); }
JUNO_BOTH void store_scale(void* p, Scale s) { store_bytes(p, s); }
template <int kByte, bool kSigned>
JUNO_BOTH Scale scale_of(Ints bytes) {
  return as_shorts<kByte, kByte, kSigned, 0>(bytes);
}
// The empty asm: else the compiler adds late and spills every product.
template <bool kSigned>
JUNO_BOTH Ints add_four(Ints sum, Bytes w, const std::byte* x) {
  Bytes products;
  if constexpr (kSigned)
    products = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(same_four(x), w));
  else products = _mm256_maddubs_epi16(w, same_four(x));
  sum = _mm256_add_epi16(sum, products);
  asm volatile("" : "+x"(sum));
  return sum;
}
template <bool kSigned>
JUNO_BOTH Ints add_four(Ints sum, Shorts4 w, const std::byte* x) {
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w.even, same_four(x)));
  asm volatile("" : "+x"(sum));
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w.odd, same_four(x + 4)));
  asm volatile("" : "+x"(sum));
  return sum;
}
JUNO_BOTH Ints add_pair(Ints sum, Bytes w, const void* x) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(w, same_four(x)));
}
JUNO_BOTH Whole no_whole() { return _mm256_setzero_si256(); }
template <bool kScaled, bool kOnce, int kWidth>
JUNO_BOTH Whole fold(Whole whole, Ints part, const void* scale) {
  if constexpr (kWidth == 1)
    part = _mm256_madd_epi16(part, kScaled ? load_scale(scale) : _mm256_set1_epi16(1));
  else if constexpr (kScaled) part = _mm256_mullo_epi32(part, _mm256_srai_epi32(load_scale(scale), 16));
  return _mm256_add_epi32(whole, part);
}
JUNO_BOTH Floats value_of(Whole whole) { return _mm256_cvtepi32_ps(whole); }

#endif

}  // namespace
}  // namespace juno::cpu

#endif
