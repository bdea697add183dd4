// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the byte kernels: kPair weight rows side by side, 32 bytes or 8 numbers of each. A number
// of a row belongs to one of its eight groups. Included by the files of vec/ only.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/portable.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define JUNO_WIDE 1
#include <immintrin.h>

namespace juno::cpu {
namespace {

inline constexpr int kGroupLanes = 8;

using Rows = const uint8_t* const*;  // kPair pointers

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)

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

#else

inline constexpr int kPair = 1;
inline constexpr int kSignedOffset = 0;

using Bytes = __m256i;
using Ints = __m256i;
using Floats = __m256;

JUNO_BOTH Bytes load_bytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
JUNO_BOTH void store_bytes(void* p, Bytes v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
JUNO_BOTH Bytes bytes32(Rows w, int64_t at) { return load_bytes(w[0] + at); }
JUNO_BOTH Bytes bytes16(Rows w, int64_t at) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w[0] + at)));
}
JUNO_BOTH Bytes same_bytes(const void* p) { return load_bytes(p); }
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
JUNO_BOTH Bytes halves(Bytes v) {
  return both_bits(_mm256_srlv_epi64(v, _mm256_setr_epi64x(0, 0, 4, 4)), all_bytes(15));
}
JUNO_BOTH Bytes look_up(__m128i table, Bytes index) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index);
}
JUNO_BOTH Bytes with_bit5(Bytes v, Rows w, int64_t at) {
  int bits;
  std::memcpy(&bits, w[0] + at, sizeof bits);
  const Bytes spread =
      _mm256_shuffle_epi8(_mm256_set1_epi32(bits),
                          _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const Bytes own = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  return _mm256_or_si256(v, both_bits(_mm256_cmpeq_epi8(both_bits(spread, own), own), all_bytes(16)));
}

JUNO_BOTH Ints no_ints() { return _mm256_setzero_si256(); }
JUNO_BOTH Ints load_ints(const int32_t* p) { return load_bytes(p); }
JUNO_BOTH Ints same_ints(const int32_t* p) { return load_bytes(p); }
JUNO_BOTH Ints minus(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
JUNO_BOTH Ints times(Ints a, int b) { return _mm256_mullo_epi32(a, _mm256_set1_epi32(b)); }
JUNO_BOTH Ints dot_scaled(Ints acc, Bytes w, Bytes x, Bytes scale) {
  return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), scale));
}
JUNO_BOTH Ints dot_unsigned(Ints acc, Bytes w, Bytes x) {
  return dot_scaled(acc, w, x, _mm256_set1_epi16(1));
}
JUNO_BOTH Ints dot_scaled_signed(Ints acc, Bytes w, Bytes x, Bytes scale) {
  return dot_scaled(acc, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w), scale);
}
JUNO_BOTH Ints dot_signed(Ints acc, Bytes w, Bytes x) {
  return dot_scaled_signed(acc, w, x, _mm256_set1_epi16(1));
}
JUNO_BOTH Bytes scale32(const uint32_t* const* s, int64_t at) {
  return _mm256_set1_epi32(static_cast<int>(s[0][at]));
}
JUNO_BOTH Bytes scale16(const uint32_t* const* s, int64_t at) {
  int64_t both;
  std::memcpy(&both, s[0] + at, sizeof both);
  return _mm256_castps_si256(_mm256_permutevar_ps(_mm256_castsi256_ps(_mm256_set1_epi64x(both)),
                                                  _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1)));
}
JUNO_BOTH Ints add_parts(const Ints* part) {
  Ints four[2];
  for (int i = 0; i < 2; ++i) {
    const Ints* p = part + 4 * i;
    four[i] = _mm256_hadd_epi32(_mm256_hadd_epi32(p[0], p[1]), _mm256_hadd_epi32(p[2], p[3]));
  }
  return _mm256_add_epi32(_mm256_permute2x128_si256(four[0], four[1], 0x20),
                          _mm256_permute2x128_si256(four[0], four[1], 0x31));
}

inline constexpr int kVector = 8;
JUNO_BOTH Bytes four_bytes(const uint8_t* p) {
  int32_t four;
  std::memcpy(&four, p, sizeof four);
  return _mm256_set1_epi32(four);
}
// Pairs of products add up in 16 bits.
template <bool kSigned, int kLargest>
inline constexpr int kRunOf = kSigned || kLargest * 2 * 127 * 2 > 32767 ? 1
                              : kLargest * 2 * 127 * 4 > 32767          ? 2
                              : kLargest * 2 * 127 * 8 > 32767          ? 4
                                                                        : 8;
template <bool kSigned>
JUNO_BOTH Ints add_products(Ints acc, Bytes w, Bytes x) {
  Bytes products;
  if constexpr (kSigned) products = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  else products = _mm256_maddubs_epi16(w, x);
  acc = _mm256_add_epi16(acc, products);
  asm volatile("" : "+x"(acc));  // else the compiler adds late and spills every product
  return acc;
}
JUNO_BOTH Ints finished(Ints sums, Ints parts) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(parts, _mm256_set1_epi16(1)));
}
JUNO_BOTH Bytes unsign(Bytes w) { return w; }
JUNO_BOTH void store_rows(uint8_t* const* to, int64_t at, Bytes v) { store_bytes(to[0] + at, v); }

JUNO_BOTH Floats no_floats() { return _mm256_setzero_ps(); }
JUNO_BOTH Floats all_floats(float x) { return _mm256_set1_ps(x); }
JUNO_BOTH Floats wide_add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
JUNO_BOTH Floats wide_load(const float* p) { return _mm256_loadu_ps(p); }
JUNO_BOTH Floats same_floats(const float* p) { return _mm256_loadu_ps(p); }
JUNO_BOTH Floats widen_f16(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
JUNO_BOTH Floats widen_dwords(__m256i v) {
  const __m256i packed = _mm256_packus_epi32(v, v);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0xd8)));
}
JUNO_BOTH Floats widen_low(const void* p) {
  return widen_dwords(_mm256_and_si256(load_bytes(p), _mm256_set1_epi32(0xffff)));
}
JUNO_BOTH Floats widen_high(const void* p) { return widen_dwords(_mm256_srli_epi32(load_bytes(p), 16)); }
JUNO_BOTH void add_groups(Floats v, float* y) {
  const __m256 pairs = _mm256_hadd_ps(v, v), fours = _mm256_hadd_ps(pairs, pairs);
  *y = _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1)));
}
JUNO_BOTH Floats to_floats(Ints v) { return _mm256_cvtepi32_ps(v); }
JUNO_BOTH Floats wide_negative(Floats v) { return _mm256_xor_ps(v, _mm256_set1_ps(-0.0f)); }
JUNO_BOTH Floats wide_mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
JUNO_BOTH Floats wide_fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
JUNO_BOTH void wide_store(float* p, Floats v) { _mm256_storeu_ps(p, v); }

#endif

inline constexpr int kWide = kPair * kGroupLanes;

}  // namespace
}  // namespace juno::cpu

#endif
