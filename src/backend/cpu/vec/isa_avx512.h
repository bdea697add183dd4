// SPDX-License-Identifier: Apache-2.0
// The vocabulary of AVX-512 with BW, VL, DQ and VNNI.
#pragma once
#include "backend/cpu/vec/isa_x86.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)

namespace juno::cpu {
namespace {

using Bytes = __m512i;
using Ints = __m512i;
using Floats = __m512;

JUNO_BOTH Bytes load_bytes(const void* p) { return _mm512_loadu_si512(p); }
JUNO_BOTH void store_bytes(void* p, Bytes v) { _mm512_storeu_si512(p, v); }
JUNO_BOTH Bytes all_bytes(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
JUNO_BOTH Bytes both_bits(Bytes a, Bytes b) { return _mm512_and_si512(a, b); }
JUNO_BOTH Bytes either_bits(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
// Of 16 bits each. The compiler picks the instruction: one for a constant, another for a variable.
using Shorts [[gnu::vector_size(64)]] = uint16_t;
JUNO_BOTH Bytes down(Bytes v, unsigned bits) {
  return reinterpret_cast<Bytes>(reinterpret_cast<Shorts>(v) >> static_cast<uint16_t>(bits));
}
template <int kBits>
JUNO_BOTH Bytes up(Bytes v) {
  return _mm512_slli_epi16(v, kBits);
}
JUNO_BOTH Bytes look_up(__m128i table, Bytes index) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), index);
}

JUNO_BOTH Ints no_ints() { return _mm512_setzero_si512(); }
JUNO_BOTH Ints load_ints(const int32_t* p) { return _mm512_loadu_si512(p); }
JUNO_BOTH Ints minus(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }

// A signed cell as add_four takes it.
JUNO_BOTH Bytes unsign(Bytes w) { return _mm512_xor_si512(w, all_bytes(0x80)); }

JUNO_BOTH Floats no_floats() { return _mm512_setzero_ps(); }
JUNO_BOTH Floats all_floats(float x) { return _mm512_set1_ps(x); }
JUNO_BOTH Floats wide_add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
JUNO_BOTH Floats wide_load(const float* p) { return _mm512_loadu_ps(p); }
JUNO_BOTH Floats as_floats(Ints v) { return _mm512_castsi512_ps(v); }
JUNO_BOTH Floats to_floats(Ints v) { return _mm512_cvtepi32_ps(v); }
JUNO_BOTH Floats wide_negative(Floats v) {
  return _mm512_castsi512_ps(
      _mm512_xor_si512(_mm512_castps_si512(v), _mm512_set1_epi32(static_cast<int>(0x80000000u))));
}
JUNO_BOTH Floats wide_mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
JUNO_BOTH Floats wide_fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
JUNO_BOTH void wide_store(float* p, Floats v) { _mm512_storeu_ps(p, v); }

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

// to[i] = the halving tree of sums[i], eight at a time.
template <int kCount>
JUNO_BOTH void halving_trees(const Lanes* sums, float* to) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
#pragma GCC unroll 2
  for (int first = 0; first < kCount; first += 8) {
    __m512 eights[4], fours[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512 a = sums[first + 2 * i].v, b = sums[first + 2 * i + 1].v;
      eights[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m512 a = eights[2 * i], b = eights[2 * i + 1];
      fours[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    }
    const __m512 twos = _mm512_add_ps(_mm512_shuffle_ps(fours[0], fours[1], 0x44),
                                      _mm512_shuffle_ps(fours[0], fours[1], 0xee));
    const __m512 ones = _mm512_add_ps(twos, _mm512_permute_ps(twos, 0xb1));
    _mm256_storeu_ps(to + first, _mm512_castps512_ps256(_mm512_permutexvar_ps(order, ones)));
  }
}

// What the processor does at most (probe.h). The empty asm makes a factor look new, so that no product is
// taken out of its loop, and a sum needed at once, so that no product waits for it in memory. Loops that are
// unrolled late would leave the sums there too.
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

}  // namespace
}  // namespace juno::cpu

#endif
