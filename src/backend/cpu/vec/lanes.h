// SPDX-License-Identifier: Apache-2.0
// Sixteen floats side by side, in whatever registers the instruction set has. Included by vec/kernels.cc
// only.
#pragma once
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "backend/cpu/kernels.h"
#include "base/half.h"
#include "base/portable.h"

namespace juno::cpu {
namespace {

using juno::fma;  // of one number, beside those of Lanes below

#if defined(__AVX2__) && defined(__F16C__)
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
#endif

#if defined(__AVX512F__)

inline constexpr int kTileRows = 8;  // weight rows against one tile of tokens: what the registers hold

struct Lanes {
  __m512 v;
};
JUNO_BOTH Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
JUNO_BOTH Lanes load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
// p [16 rows, stride]: elements 0 … 7 of all rows, as f32.
JUNO_BOTH void load_columns(const uint16_t* p, int64_t stride, Lanes* to) {
  __m256i columns[8];
  load_turned(p, stride, columns);
  for (int i = 0; i < 8; ++i) to[i] = {_mm512_cvtph_ps(columns[i])};
}
JUNO_BOTH Lanes load_bf16(const uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
JUNO_BOTH void store(float* p, Lanes a) { _mm512_storeu_ps(p, a.v); }
JUNO_BOTH Lanes all(float x) { return {_mm512_set1_ps(x)}; }
JUNO_BOTH Lanes mul(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
JUNO_BOTH Lanes add(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
JUNO_BOTH Lanes fma(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
JUNO_BOTH Lanes exact_fma(Lanes a, Lanes b, Lanes c) { return fma(a, b, c); }

#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

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

#else

inline constexpr int kTileRows = 2;

struct Lanes {
  float v[kLanes];
};
JUNO_BOTH Lanes load(const float* p) {
  Lanes r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = p[i];
  return r;
}
JUNO_BOTH Lanes load_f16(const uint16_t* p) {
  Lanes r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = f16_to_f32(p[i]);
  return r;
}
JUNO_BOTH void load_columns(const uint16_t* p, int64_t stride, Lanes* to) {
  for (int i = 0; i < 8; ++i)
    for (int row = 0; row < kLanes; ++row) to[i].v[row] = f16_to_f32(p[row * stride + i]);
}
JUNO_BOTH Lanes load_bf16(const uint16_t* p) {
  Lanes r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = bf16_to_f32(p[i]);
  return r;
}
JUNO_BOTH void store(float* p, const Lanes& a) {
  for (int i = 0; i < kLanes; ++i) p[i] = a.v[i];
}
JUNO_BOTH Lanes all(float x) {
  Lanes r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = x;
  return r;
}
JUNO_BOTH Lanes mul(const Lanes& a, const Lanes& b) {
  Lanes r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = a.v[i] * b.v[i];
  return r;
}
JUNO_BOTH Lanes add(const Lanes& a, const Lanes& b) {
  Lanes r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = a.v[i] + b.v[i];
  return r;
}
JUNO_BOTH Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  Lanes r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = juno::fma(a.v[i], b.v[i], c.v[i]);
  return r;
}
// Where the product and the sum are both exact, a processor without fma may do them apart.
JUNO_BOTH Lanes exact_fma(const Lanes& a, const Lanes& b, const Lanes& c) { return add(mul(a, b), c); }

#endif

}  // namespace
}  // namespace juno::cpu
