// SPDX-License-Identifier: Apache-2.0
// The vocabulary of any processor: what the compiler makes of plain loops. There are no kernels of bytes.
#pragma once
#include "backend/cpu/vec/words.h"
#include "base/half.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace juno::cpu {
namespace {

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

// What the processor does at most (probe.h). The empty asm makes a factor look new, so that no product is
// taken out of its loop, and a sum needed at once, so that no product waits for it in memory. Loops that are
// unrolled late would leave the sums there too.
#if defined(__SSE2__)

int64_t multiply_add(int64_t rounds) {
  constexpr int kSums = 8;
  __m128i sums[kSums], x = _mm_set1_epi16(1);
#pragma GCC unroll 16
  for (__m128i& sum : sums) sum = _mm_setzero_si128();
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (__m128i& sum : sums) {
      sum = _mm_add_epi32(sum, _mm_madd_epi16(x, x));
      asm volatile("" : "+x"(sum), "+x"(x));
    }
  }
#pragma GCC unroll 16
  for (__m128i sum : sums) asm volatile("" : : "x"(sum));
  return rounds * kSums * 8;
}

#else

int64_t multiply_add(int64_t rounds) {
  constexpr int kSums = 64;
  int32_t sums[kSums] = {};
  int8_t x[kSums];
  for (int8_t& v : x) v = 1;
  for (int64_t r = 0; r < rounds; ++r) {
    asm volatile("" : : "r"(x) : "memory");
    for (int i = 0; i < kSums; ++i) sums[i] += x[i] * x[i];
  }
  asm volatile("" : : "r"(sums) : "memory");
  return rounds * kSums;
}

#endif

}  // namespace
}  // namespace juno::cpu
