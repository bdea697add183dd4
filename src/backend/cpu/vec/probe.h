// SPDX-License-Identifier: Apache-2.0
// What a processor does at most with this instruction set: reading memory, and multiplying bytes that lie in
// registers already. Included by vec/kernels.cc only.
#pragma once
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "backend/cpu/kernels.h"

namespace juno::cpu {
namespace {

void read_all(const std::byte* from, size_t bytes) {
  uint64_t sums[8] = {};
  const auto* at = reinterpret_cast<const uint64_t*>(from);
  for (size_t i = 0; i + 8 <= bytes / sizeof *at; i += 8)
    for (int j = 0; j < 8; ++j) sums[j] ^= at[i + j];
  for (uint64_t sum : sums) asm volatile("" : : "r"(sum));
}

// The empty asm of the loops below makes a factor look new, so that no product is taken out of its loop, and
// a sum needed at once, so that no product waits for it in memory. Loops that are unrolled late would leave
// the sums there too.

#if defined(__AVX512VNNI__)

int64_t multiply_add(int64_t rounds) {
  constexpr int kSums = 12;  // sums on the way: more than the instruction's latency needs
  __m512i sums[kSums], x = _mm512_set1_epi8(1);
#pragma GCC unroll 16
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, x, x);
      asm volatile("" : "+v"(sum), "+v"(x));
    }
  }
#pragma GCC unroll 16
  for (__m512i sum : sums) asm volatile("" : : "v"(sum));
  return rounds * kSums * 64;
}

#elif defined(__AVX2__)

// Pairs of products add up in 16 bits as long as small weights allow: eight times, then once in 32.
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

#elif defined(__SSE2__)

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
