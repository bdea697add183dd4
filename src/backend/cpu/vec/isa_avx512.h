// SPDX-License-Identifier: Apache-2.0
// The vocabulary of AVX-512 with BW, VL, DQ and VNNI: two weight rows side by side in a register.
#pragma once
#include "backend/cpu/vec/isa_x86.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)

namespace juno::cpu {
namespace {

inline constexpr int kPair = 2;
inline constexpr int kSignedOffset = 128;  // what dot_signed's result is too large by, times the sum of x

using Bytes = __m512i;
using Ints = __m512i;
using Floats = __m512;

JUNO_BOTH Bytes pair_bytes(__m256i a, __m256i b) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}
JUNO_BOTH Bytes bytes32(Rows w, int64_t at) {
  return pair_bytes(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w[0] + at)),
                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w[1] + at)));
}
// 16 bytes of each row, twice.
JUNO_BOTH Bytes bytes16(Rows w, int64_t at) {
  const Bytes a = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w[0] + at)));
  return _mm512_mask_broadcast_i32x4(a, 0xff00, _mm_loadu_si128(reinterpret_cast<const __m128i*>(w[1] + at)));
}
// The same 32 bytes for each row.
JUNO_BOTH Bytes same_bytes(const void* p) {
  return _mm512_broadcast_i64x4(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
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
// Of 16 bytes twice: the low halves, then the high halves.
JUNO_BOTH Bytes halves(Bytes v) {
  return both_bits(_mm512_srlv_epi64(v, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4)), all_bytes(15));
}
JUNO_BOTH Bytes look_up(__m128i table, Bytes index) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), index);
}
// 16 is added where the 32 bits at `at` are set.
JUNO_BOTH Bytes with_bit5(Bytes v, Rows w, int64_t at) {
  uint32_t a, b;
  std::memcpy(&a, w[0] + at, sizeof a);
  std::memcpy(&b, w[1] + at, sizeof b);
  return _mm512_mask_add_epi8(v, static_cast<uint64_t>(b) << 32 | a, v, all_bytes(16));
}

JUNO_BOTH Ints no_ints() { return _mm512_setzero_si512(); }
JUNO_BOTH Ints load_ints(const int32_t* p) { return _mm512_loadu_si512(p); }
JUNO_BOTH Ints same_ints(const int32_t* p) { return same_bytes(p); }
JUNO_BOTH Ints minus(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
JUNO_BOTH Ints times(Ints a, int b) { return _mm512_mullo_epi32(a, _mm512_set1_epi32(b)); }
// acc + w · x, four neighbours at a time; w unsigned, x signed.
JUNO_BOTH Ints dot_unsigned(Ints acc, Bytes w, Bytes x) { return _mm512_dpbusd_epi32(acc, w, x); }
JUNO_BOTH Ints dot_signed(Ints acc, Bytes w, Bytes x) {
  return _mm512_dpbusd_epi32(acc, _mm512_xor_si512(w, all_bytes(0x80)), x);
}
// acc + (w · x) scale: pairs in 16 bits, |w| up to 127.
JUNO_BOTH Ints dot_scaled(Ints acc, Bytes w, Bytes x, Bytes scale) {
  return _mm512_dpwssd_epi32(acc, _mm512_maddubs_epi16(w, x), scale);
}
JUNO_BOTH Ints dot_scaled_signed(Ints acc, Bytes w, Bytes x, Bytes scale) {
  const Bytes turned = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
  return dot_scaled(acc, _mm512_abs_epi8(w), turned, scale);
}
// One number of each row for all of it.
JUNO_BOTH Bytes scale32(const uint32_t* const* s, int64_t at) {
  return _mm512_mask_set1_epi32(_mm512_set1_epi32(static_cast<int>(s[0][at])), 0xff00,
                                static_cast<int>(s[1][at]));
}
// Two numbers, each for 16 bytes.
JUNO_BOTH Bytes scale16(const uint32_t* const* s, int64_t at) {
  int64_t a, b;
  std::memcpy(&a, s[0] + at, sizeof a);
  std::memcpy(&b, s[1] + at, sizeof b);
  const __m512i four = _mm512_mask_set1_epi64(_mm512_set1_epi64(a), 0xf0, b);
  return _mm512_castps_si512(_mm512_permutevar_ps(
      _mm512_castsi512_ps(four), _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1)));
}
// part[g]: eight parts of a sum for each row. Their sums, group beside group.
JUNO_BOTH Ints add_parts(const Ints* part) {
  Ints four[2];
  for (int i = 0; i < 2; ++i) {
    const Ints* p = part + 4 * i;
    const Ints a = _mm512_add_epi32(_mm512_unpacklo_epi32(p[0], p[1]), _mm512_unpackhi_epi32(p[0], p[1]));
    const Ints b = _mm512_add_epi32(_mm512_unpacklo_epi32(p[2], p[3]), _mm512_unpackhi_epi32(p[2], p[3]));
    four[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  }
  const Ints mixed = _mm512_add_epi32(_mm512_shuffle_i64x2(four[0], four[1], 0x88),
                                      _mm512_shuffle_i64x2(four[0], four[1], 0xdd));
  return _mm512_shuffle_i64x2(mixed, mixed, 0xd8);
}

// Of tokens side by side: kVector of them, four elements of each, times four of one row's.
inline constexpr int kVector = 16;
JUNO_BOTH Bytes four_bytes(const uint8_t* p) {
  int32_t four;
  std::memcpy(&four, p, sizeof four);
  return _mm512_set1_epi32(four);
}
// Sums on the way: kRun products may be added before they must be finished.
template <bool kSigned, int kLargest>
inline constexpr int kRunOf = 64;
template <bool kSigned>
JUNO_BOTH Ints add_products(Ints acc, Bytes w, Bytes x) {
  return _mm512_dpbusd_epi32(acc, w, x);
}
JUNO_BOTH Ints finished(Ints sums, Ints parts) { return _mm512_add_epi32(sums, parts); }
// A signed cell as add_products takes it.
JUNO_BOTH Bytes unsign(Bytes w) { return _mm512_xor_si512(w, all_bytes(0x80)); }
// 32 bytes to each row.
JUNO_BOTH void store_rows(uint8_t* const* to, int64_t at, Bytes v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to[0] + at), _mm512_castsi512_si256(v));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to[1] + at), _mm512_extracti64x4_epi64(v, 1));
}

JUNO_BOTH Floats no_floats() { return _mm512_setzero_ps(); }
JUNO_BOTH Floats all_floats(float x) { return _mm512_set1_ps(x); }
JUNO_BOTH Floats wide_add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
JUNO_BOTH Floats wide_load(const float* p) { return _mm512_loadu_ps(p); }
JUNO_BOTH Floats same_floats(const float* p) { return _mm512_broadcast_f32x8(_mm256_loadu_ps(p)); }
JUNO_BOTH Floats widen_f16(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
// The f16 in the low, the high half of each 32 bits.
JUNO_BOTH Floats widen_low(const void* p) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_loadu_si512(p)));
}
JUNO_BOTH Floats widen_high(const void* p) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_loadu_si512(p), 16)));
}
// Each row's groups: neighbours are added, then neighbouring sums.
JUNO_BOTH void add_groups(Floats v, float* y) {
  const __m256 low = _mm512_castps512_ps256(v);
  const __m256 high = _mm512_extractf32x8_ps(v, 1);
  const __m256 pairs = _mm256_hadd_ps(low, high), fours = _mm256_hadd_ps(pairs, pairs);
  const __m128 sums = _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1));
  _mm_storel_pi(reinterpret_cast<__m64*>(y), sums);
}
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
