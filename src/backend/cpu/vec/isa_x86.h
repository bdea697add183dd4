// SPDX-License-Identifier: Apache-2.0
// Words that AVX2 and AVX-512 share. Included by their vocabularies only.
#pragma once
#include "backend/cpu/vec/words.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

#define JUNO_WIDE 1

namespace juno::cpu {
namespace {

// A number in each of 16 bytes.
using Table = __m128i;
JUNO_BOTH Table table16(const int8_t* values) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
}

// Eight small numbers, each in both halves of 32 bits; sixteen as 16 bits; eight as floats.
JUNO_BOTH void spread8(uint64_t from, uint32_t* to) {
  const __m256i v = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(from)));
  const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_or_si256(low, _mm256_slli_epi32(v, 16)));
}
JUNO_BOTH void spread16(const uint64_t* from, int16_t* to) {
  const __m128i v = _mm_set_epi64x(static_cast<int64_t>(from[1]), static_cast<int64_t>(from[0]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_cvtepi8_epi16(v));
}
JUNO_BOTH void widen8(uint64_t from, float* to) {
  const __m128i v = _mm_cvtsi64_si128(static_cast<int64_t>(from));
  _mm256_storeu_ps(to, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)));
}
JUNO_BOTH float widen_half(uint16_t h) { return _cvtsh_ss(h); }

// Of 16 and 16 numbers: the sums of two neighbouring products.
JUNO_BOTH void pair_products(const int16_t* a, const int16_t* b, int32_t* to) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a));
  const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_madd_epi16(x, y));
}

// rows[i]: eight 16-bit numbers of row i and of row i + 8. Number j of all sixteen rows to columns[j].
JUNO_BOTH void turn16x8(const __m256i* rows, __m256i* columns) {
  __m256i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    for (int half = 0; half < 2; ++half) {
      b[4 * i + 2 * half] = _mm256_unpacklo_epi32(a[4 * i + half], a[4 * i + 2 + half]);
      b[4 * i + 2 * half + 1] = _mm256_unpackhi_epi32(a[4 * i + half], a[4 * i + 2 + half]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    columns[2 * i] = _mm256_unpacklo_epi64(b[i], b[4 + i]);
    columns[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[4 + i]);
  }
}
// Eight f16 of each of sixteen rows, `stride` apart.
JUNO_BOTH void load_turned(const uint16_t* p, int64_t stride, __m256i* columns) {
  __m256i rows[8];
  for (int i = 0; i < 8; ++i)
    rows[i] = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(p + (i + 8) * stride),
                                  reinterpret_cast<const __m128i*>(p + i * stride));
  turn16x8(rows, columns);
}

}  // namespace
}  // namespace juno::cpu

#endif
