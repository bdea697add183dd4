// SPDX-License-Identifier: Apache-2.0
// The vocabulary of AVX2 with FMA and F16C.
#pragma once
#include "backend/cpu/vec/isa_x86.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

namespace juno::cpu {
namespace {

using Bytes = __m256i;
using Ints = __m256i;
using Floats = __m256;

JUNO_BOTH Bytes load_bytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
JUNO_BOTH void store_bytes(void* p, Bytes v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
JUNO_BOTH Bytes all_bytes(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
JUNO_BOTH Bytes both_bits(Bytes a, Bytes b) { return _mm256_and_si256(a, b); }
JUNO_BOTH Bytes either_bits(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
using Shorts [[gnu::vector_size(32)]] = uint16_t;
JUNO_BOTH Bytes down(Bytes v, unsigned bits) {
  return reinterpret_cast<Bytes>(reinterpret_cast<Shorts>(v) >> static_cast<uint16_t>(bits));
}
template <int kBits>
JUNO_BOTH Bytes up(Bytes v) {
  return _mm256_slli_epi16(v, kBits);
}
JUNO_BOTH Bytes look_up(__m128i table, Bytes index) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index);
}

JUNO_BOTH Ints no_ints() { return _mm256_setzero_si256(); }
JUNO_BOTH Ints load_ints(const int32_t* p) { return load_bytes(p); }
JUNO_BOTH Ints minus(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }

JUNO_BOTH Floats no_floats() { return _mm256_setzero_ps(); }
JUNO_BOTH Floats all_floats(float x) { return _mm256_set1_ps(x); }
JUNO_BOTH Floats wide_add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
JUNO_BOTH Floats wide_load(const float* p) { return _mm256_loadu_ps(p); }
JUNO_BOTH Floats widen_dwords(__m256i v) {
  const __m256i packed = _mm256_packus_epi32(v, v);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0xd8)));
}
JUNO_BOTH Floats as_floats(Ints v) { return _mm256_castsi256_ps(v); }
JUNO_BOTH Floats to_floats(Ints v) { return _mm256_cvtepi32_ps(v); }
JUNO_BOTH Floats wide_negative(Floats v) { return _mm256_xor_ps(v, _mm256_set1_ps(-0.0f)); }
JUNO_BOTH Floats wide_mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
JUNO_BOTH Floats wide_fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
JUNO_BOTH void wide_store(float* p, Floats v) { _mm256_storeu_ps(p, v); }

inline constexpr int kTileRows = 4;

struct Lanes {
  __m256 lo, hi;
};
JUNO_BOTH Lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
JUNO_BOTH Lanes load_f16(const uint16_t* p) {
  const auto* half = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(half)), _mm256_cvtph_ps(_mm_loadu_si128(half + 1))};
}
JUNO_BOTH void load_columns(const uint16_t* p, int64_t stride, Lanes* to) {
  __m256i columns[8];
  load_turned(p, stride, columns);
  for (int i = 0; i < 8; ++i)
    to[i] = {_mm256_cvtph_ps(_mm256_castsi256_si128(columns[i])),
             _mm256_cvtph_ps(_mm256_extracti128_si256(columns[i], 1))};
}
JUNO_BOTH __m256 bf16x8(__m128i half) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
JUNO_BOTH Lanes load_bf16(const uint16_t* p) {
  const auto* half = reinterpret_cast<const __m128i*>(p);
  return {bf16x8(_mm_loadu_si128(half)), bf16x8(_mm_loadu_si128(half + 1))};
}
JUNO_BOTH void store(float* p, Lanes a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
JUNO_BOTH Lanes all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
JUNO_BOTH Lanes mul(Lanes a, Lanes b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
JUNO_BOTH Lanes add(Lanes a, Lanes b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
JUNO_BOTH Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
JUNO_BOTH Lanes exact_fma(Lanes a, Lanes b, Lanes c) { return fma(a, b, c); }

// to[i] = the halving tree of sums[i], four at a time.
template <int kCount>
JUNO_BOTH void halving_trees(const Lanes* sums, float* to) {
#pragma GCC unroll 2
  for (int first = 0; first < kCount; first += 4) {
    __m256 eights[4], fours[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) eights[i] = _mm256_add_ps(sums[first + i].lo, sums[first + i].hi);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m256 a = eights[2 * i], b = eights[2 * i + 1];
      fours[i] = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    }
    const __m256 twos = _mm256_add_ps(_mm256_shuffle_ps(fours[0], fours[1], 0x44),
                                      _mm256_shuffle_ps(fours[0], fours[1], 0xee));
    const __m256 ones = _mm256_add_ps(twos, _mm256_permute_ps(twos, 0xb1));
    const __m128 low = _mm256_castps256_ps128(ones), high = _mm256_extractf128_ps(ones, 1);
    _mm_storeu_ps(to + first,
                  _mm_unpacklo_ps(_mm_shuffle_ps(low, low, 0x88), _mm_shuffle_ps(high, high, 0x88)));
  }
}

#if !defined(__AVXVNNI__)  // isa_avxvnni.h has better words for these

JUNO_BOTH Bytes unsign(Bytes w) { return w; }

// What the processor does at most (probe.h). The empty asm makes a factor look new, so that no product is
// taken out of its loop, and a sum needed at once, so that no product waits for it in memory. Loops that are
// unrolled late would leave the sums there too. Pairs of products add up in 16 bits as long as small weights
// allow: eight times, then once in 32.
int64_t multiply_add(int64_t rounds) {
  constexpr int kSums = 5, kRun = 8;
  __m256i sums[kSums], parts[kSums], x = _mm256_set1_epi8(1);
#pragma GCC unroll 16
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (__m256i& part : parts) part = _mm256_setzero_si256();
    for (int i = 0; i < kRun; ++i) {
#pragma GCC unroll 16
      for (__m256i& part : parts) {
        part = _mm256_add_epi16(part, _mm256_maddubs_epi16(x, x));
        asm volatile("" : "+x"(part), "+x"(x));
      }
    }
#pragma GCC unroll 16
    for (int j = 0; j < kSums; ++j)
      sums[j] = _mm256_add_epi32(sums[j], _mm256_madd_epi16(parts[j], _mm256_set1_epi16(1)));
  }
#pragma GCC unroll 16
  for (__m256i sum : sums) asm volatile("" : : "x"(sum));
  return rounds * kSums * kRun * 32;
}

#endif

}  // namespace
}  // namespace juno::cpu

#endif
