// SPDX-License-Identifier: Apache-2.0
// The vocabulary of AVX-VNNI: that of AVX2, with dot products of four bytes in one instruction.
#pragma once
#include "backend/cpu/vec/isa_avx2.h"

#if defined(__AVXVNNI__)

namespace juno::cpu {
namespace {

JUNO_BOTH Ints dot_unsigned(Ints acc, Bytes w, Bytes x) { return _mm256_dpbusd_avx_epi32(acc, w, x); }

JUNO_BOTH Bytes unsign(Bytes w) { return _mm256_xor_si256(w, all_bytes(0x80)); }

// As in isa_avx512.h.
int64_t multiply_add(int64_t rounds) {
  constexpr int kSums = 12;
  __m256i sums[kSums], x = _mm256_set1_epi8(1);
#pragma GCC unroll 16
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (__m256i& sum : sums) {
      sum = _mm256_dpbusd_avx_epi32(sum, x, x);
      asm volatile("" : "+x"(sum), "+x"(x));
    }
  }
#pragma GCC unroll 16
  for (__m256i sum : sums) asm volatile("" : : "x"(sum));
  return rounds * kSums * 32;
}

}  // namespace
}  // namespace juno::cpu

#endif
