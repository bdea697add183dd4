// SPDX-License-Identifier: Apache-2.0
// Words that AVX2 and AVX-512 share. Included by their vocabularies only.
#pragma once
#include "backend/cpu/vec/words.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

namespace juno::cpu {
namespace {

// A number in each of 16 bytes.
using Table = __m128i;
JUNO_BOTH Table table16(const int8_t* values) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
}

#define JUNO_QUANTISE 1
// Of 32 numbers: the largest magnitude's bits; the nearest integers (rne_int) to x r; the sums of 16
// integers.
JUNO_BOTH uint32_t largest32(const float* x) {
  const __m256i bits = _mm256_set1_epi32(0x7fffffff);
  __m256i top = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    top = _mm256_max_epu32(top, _mm256_and_si256(bits, _mm256_castps_si256(_mm256_loadu_ps(x + 8 * i))));
  __m128i four = _mm_max_epu32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
}
JUNO_BOTH void quantise32(const float* x, float r, int8_t* q) {
  const __m256 factor = _mm256_set1_ps(r), rounder = _mm256_set1_ps(kRounder);
  __m256i v[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    v[i] = _mm256_sub_epi32(
        _mm256_castps_si256(_mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), factor), rounder)),
        _mm256_castps_si256(rounder));
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q),
                      _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}
JUNO_BOTH void sums16(const int8_t* q, int32_t* to) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), v);
  __m256i sum = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0x4e));
  sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0xb1));
  to[0] = _mm_cvtsi128_si32(_mm256_castsi256_si128(sum));
  to[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(sum, 1));
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
