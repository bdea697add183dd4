// SPDX-License-Identifier: Apache-2.0
// The vocabulary of 64-bit Arm with dot products of bytes (ARMv8.2 dotprod): two registers stand for 32
// bytes.
#pragma once
#include "backend/cpu/vec/words.h"
#include "base/half.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

namespace juno::cpu {
namespace {

struct Bytes {
  int32x4_t lo, hi;
};
using Ints = Bytes;
struct Floats {
  float32x4_t lo, hi;
};

JUNO_BOTH uint8x16_t u8(int32x4_t v) { return vreinterpretq_u8_s32(v); }
JUNO_BOTH int8x16_t s8(int32x4_t v) { return vreinterpretq_s8_s32(v); }
JUNO_BOTH uint16x8_t u16(int32x4_t v) { return vreinterpretq_u16_s32(v); }
JUNO_BOTH Bytes bytes_of(uint8x16_t lo, uint8x16_t hi) {
  return {vreinterpretq_s32_u8(lo), vreinterpretq_s32_u8(hi)};
}
JUNO_BOTH Bytes bytes_of(uint16x8_t lo, uint16x8_t hi) {
  return {vreinterpretq_s32_u16(lo), vreinterpretq_s32_u16(hi)};
}

JUNO_BOTH Bytes load_bytes(const void* p) {
  const auto* from = static_cast<const uint8_t*>(p);
  return bytes_of(vld1q_u8(from), vld1q_u8(from + 16));
}
JUNO_BOTH void store_bytes(void* p, Bytes v) {
  vst1q_u8(static_cast<uint8_t*>(p), u8(v.lo));
  vst1q_u8(static_cast<uint8_t*>(p) + 16, u8(v.hi));
}
JUNO_BOTH Bytes all_bytes(int x) {
  const uint8x16_t v = vdupq_n_u8(static_cast<uint8_t>(x));
  return bytes_of(v, v);
}
JUNO_BOTH Bytes both_bits(Bytes a, Bytes b) { return {vandq_s32(a.lo, b.lo), vandq_s32(a.hi, b.hi)}; }
JUNO_BOTH Bytes either_bits(Bytes a, Bytes b) { return {vorrq_s32(a.lo, b.lo), vorrq_s32(a.hi, b.hi)}; }
JUNO_BOTH Bytes down(Bytes v, unsigned bits) {
  const int16x8_t by = vdupq_n_s16(static_cast<int16_t>(-static_cast<int>(bits)));
  return bytes_of(vshlq_u16(u16(v.lo), by), vshlq_u16(u16(v.hi), by));
}
template <int kBits>
JUNO_BOTH Bytes up(Bytes v) {
  return bytes_of(vshlq_n_u16(u16(v.lo), kBits), vshlq_n_u16(u16(v.hi), kBits));
}

using Table = uint8x16_t;
JUNO_BOTH Table table16(const int8_t* values) { return vreinterpretq_u8_s8(vld1q_s8(values)); }
JUNO_BOTH Bytes look_up(Table table, Bytes index) {
  return bytes_of(vqtbl1q_u8(table, u8(index.lo)), vqtbl1q_u8(table, u8(index.hi)));
}

JUNO_BOTH Ints no_ints() { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
JUNO_BOTH Ints load_ints(const int32_t* p) { return {vld1q_s32(p), vld1q_s32(p + 4)}; }
JUNO_BOTH Ints minus(Ints a, Ints b) { return {vsubq_s32(a.lo, b.lo), vsubq_s32(a.hi, b.hi)}; }
// acc + w · x, four neighbours at a time.
JUNO_BOTH Ints dot_signed(Ints acc, Bytes w, Bytes x) {
  return {vdotq_s32(acc.lo, s8(w.lo), s8(x.lo)), vdotq_s32(acc.hi, s8(w.hi), s8(x.hi))};
}

JUNO_BOTH Ints plus(Ints a, Ints b) { return {vaddq_s32(a.lo, b.lo), vaddq_s32(a.hi, b.hi)}; }
// A signed cell as add_four takes it.
JUNO_BOTH Bytes unsign(Bytes w) { return w; }

// Of 8 and 8 numbers: the sums of two neighbouring products.
JUNO_BOTH int32x4_t pair_products8(int16x8_t a, int16x8_t b) {
  return vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
}

JUNO_BOTH Floats no_floats() { return {vdupq_n_f32(0), vdupq_n_f32(0)}; }
JUNO_BOTH Floats all_floats(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
JUNO_BOTH Floats wide_add(Floats a, Floats b) { return {vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)}; }
JUNO_BOTH Floats wide_load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
JUNO_BOTH Floats widen_shorts(uint16x8_t v) {
  const float16x8_t half = vreinterpretq_f16_u16(v);
  return {vcvt_f32_f16(vget_low_f16(half)), vcvt_high_f32_f16(half)};
}
JUNO_BOTH Floats widen_f16(const uint16_t* p) { return widen_shorts(vld1q_u16(p)); }
JUNO_BOTH Floats as_floats(Ints v) { return {vreinterpretq_f32_s32(v.lo), vreinterpretq_f32_s32(v.hi)}; }
JUNO_BOTH Floats to_floats(Ints v) { return {vcvtq_f32_s32(v.lo), vcvtq_f32_s32(v.hi)}; }
JUNO_BOTH Floats wide_negative(Floats v) { return {vnegq_f32(v.lo), vnegq_f32(v.hi)}; }
JUNO_BOTH Floats wide_mul(Floats a, Floats b) { return {vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)}; }
JUNO_BOTH Floats wide_fma(Floats a, Floats b, Floats c) {
  return {vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)};
}
JUNO_BOTH void wide_store(float* p, Floats v) {
  vst1q_f32(p, v.lo);
  vst1q_f32(p + 4, v.hi);
}

inline constexpr int kTileRows = 4;

struct Lanes {
  Floats lo, hi;
};
JUNO_BOTH Lanes load(const float* p) { return {wide_load(p), wide_load(p + 8)}; }
JUNO_BOTH Lanes load_f16(const uint16_t* p) { return {widen_f16(p), widen_f16(p + 8)}; }
// rows[i]: eight numbers of row i. Number j of all eight rows to rows[j].
JUNO_BOTH void turn8x8(uint16x8_t* rows) {
  uint16x8_t pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = vtrn1q_u16(rows[i], rows[i + 1]);
    pairs[i + 1] = vtrn2q_u16(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      const uint32x4_t a = vreinterpretq_u32_u16(pairs[i + j]), b = vreinterpretq_u32_u16(pairs[i + 2 + j]);
      fours[i + j] = vreinterpretq_u16_u32(vtrn1q_u32(a, b));
      fours[i + 2 + j] = vreinterpretq_u16_u32(vtrn2q_u32(a, b));
    }
  }
  for (int i = 0; i < 4; ++i) {
    const uint64x2_t a = vreinterpretq_u64_u16(fours[i]), b = vreinterpretq_u64_u16(fours[4 + i]);
    rows[i] = vreinterpretq_u16_u64(vtrn1q_u64(a, b));
    rows[4 + i] = vreinterpretq_u16_u64(vtrn2q_u64(a, b));
  }
}
// p [16 rows, stride]: elements 0 … 7 of all rows, as f32.
JUNO_BOTH void load_columns(const uint16_t* p, int64_t stride, Lanes* to) {
  uint16x8_t upper[8], lower[8];
  for (int i = 0; i < 8; ++i) {
    upper[i] = vld1q_u16(p + i * stride);
    lower[i] = vld1q_u16(p + (i + 8) * stride);
  }
  turn8x8(upper);
  turn8x8(lower);
  for (int i = 0; i < 8; ++i) to[i] = {widen_shorts(upper[i]), widen_shorts(lower[i])};
}
JUNO_BOTH Floats bf16x8(const uint16_t* p) {
  const uint16x8_t v = vld1q_u16(p);
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(v), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(v, 16))};
}
JUNO_BOTH Lanes load_bf16(const uint16_t* p) { return {bf16x8(p), bf16x8(p + 8)}; }
JUNO_BOTH void store(float* p, Lanes a) {
  wide_store(p, a.lo);
  wide_store(p + 8, a.hi);
}
JUNO_BOTH Lanes all(float x) { return {all_floats(x), all_floats(x)}; }
JUNO_BOTH Lanes mul(Lanes a, Lanes b) { return {wide_mul(a.lo, b.lo), wide_mul(a.hi, b.hi)}; }
JUNO_BOTH Lanes add(Lanes a, Lanes b) { return {wide_add(a.lo, b.lo), wide_add(a.hi, b.hi)}; }
JUNO_BOTH Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {wide_fma(a.lo, b.lo, c.lo), wide_fma(a.hi, b.hi, c.hi)};
}
JUNO_BOTH Lanes exact_fma(Lanes a, Lanes b, Lanes c) { return fma(a, b, c); }

// What the processor does at most (probe.h). The empty asm makes a factor look new, so that no product is
// taken out of its loop, and a sum needed at once, so that no product waits for it in memory.
int64_t multiply_add(int64_t rounds) {
  constexpr int kSums = 16;  // sums on the way: more than the instruction's latency needs
  int32x4_t sums[kSums];
  int8x16_t x = vdupq_n_s8(1);
#pragma GCC unroll 16
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int32x4_t& sum : sums) {
      sum = vdotq_s32(sum, x, x);
      asm volatile("" : "+w"(sum), "+w"(x));
    }
  }
#pragma GCC unroll 16
  for (int32x4_t sum : sums) asm volatile("" : : "w"(sum));
  return rounds * kSums * 16;
}

}  // namespace
}  // namespace juno::cpu

#endif
