// SPDX-License-Identifier: Apache-2.0
// The words of panels (panel.h) for 64-bit Arm: eight weight rows side by side, 32 bits of each.
#pragma once
#include "backend/cpu/vec/isa_neon.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#define JUNO_PANELS 1

namespace juno::cpu {
namespace {

inline constexpr int kPanelRows = 8;
inline constexpr int kPanelTokens = 4;    // whose sums the registers hold
inline constexpr int kPairTokens = 0;     // that meet two panels at a time: none
inline constexpr int kPanelOffset = 0;    // signed bytes are stored as they are
inline constexpr bool kWideParts = true;  // add_four's sums are of 32 bits
template <bool kSigned, int kLargest>
inline constexpr int kPanelRun = 128;  // elements of a sum before it must be folded

// 16 bytes of each of four rows at w, stride apart: dword i of all to[i].
JUNO_BOTH void turn_four(const uint8_t* w, int64_t stride, int32x4_t* to) {
  int32x4_t rows[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) rows[i] = vreinterpretq_s32_u8(vld1q_u8(w + i * stride));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const int64x2_t a =
        vreinterpretq_s64_s32(i ? vtrn2q_s32(rows[0], rows[1]) : vtrn1q_s32(rows[0], rows[1]));
    const int64x2_t b =
        vreinterpretq_s64_s32(i ? vtrn2q_s32(rows[2], rows[3]) : vtrn1q_s32(rows[2], rows[3]));
    to[i] = vreinterpretq_s32_s64(vtrn1q_s64(a, b));
    to[i + 2] = vreinterpretq_s32_s64(vtrn2q_s64(a, b));
  }
}
JUNO_BOTH void turn4(const uint8_t* w, int64_t stride, Bytes* to) {
  int32x4_t lo[4], hi[4];
  turn_four(w, stride, lo);
  turn_four(w + 4 * stride, stride, hi);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) to[i] = {lo[i], hi[i]};
}

JUNO_BOTH Ints all_ints(int x) { return {vdupq_n_s32(x), vdupq_n_s32(x)}; }
JUNO_BOTH int32x4_t from_unsigned(uint32x4_t v) { return vreinterpretq_s32_u32(v); }
JUNO_BOTH uint32x4_t as_unsigned(int32x4_t v) { return vreinterpretq_u32_s32(v); }
template <int kBits>
JUNO_BOTH Ints down32(Ints v) {
  return {from_unsigned(vshrq_n_u32(as_unsigned(v.lo), kBits)),
          from_unsigned(vshrq_n_u32(as_unsigned(v.hi), kBits))};
}
template <int kBits>
JUNO_BOTH Ints up32(Ints v) {
  return {vshlq_n_s32(v.lo, kBits), vshlq_n_s32(v.hi, kBits)};
}
// 16 in byte i of a row where bit 4 * kNumber + i of its dword is set.
template <int kNumber>
JUNO_BOTH Bytes fifth_bits(Ints bits) {
  constexpr uint32_t kByte = kNumber / 2 * 0x01010101u;
  constexpr uint32_t kIndex[4] = {kByte, kByte + 0x04040404, kByte + 0x08080808, kByte + 0x0c0c0c0c};
  const uint8x16_t index = vreinterpretq_u8_u32(vld1q_u32(kIndex));
  const uint8x16_t own = vreinterpretq_u8_u32(vdupq_n_u32(kNumber % 2 ? 0x80402010u : 0x08040201u));
  return both_bits(
      bytes_of(vtstq_u8(vqtbl1q_u8(u8(bits.lo), index), own), vtstq_u8(vqtbl1q_u8(u8(bits.hi), index), own)),
      all_bytes(16));
}
JUNO_BOTH Floats low_half(Ints v) {
  return widen_shorts(vcombine_u16(vmovn_u32(as_unsigned(v.lo)), vmovn_u32(as_unsigned(v.hi))));
}
JUNO_BOTH Floats high_half(Ints v) {
  return widen_shorts(vcombine_u16(vshrn_n_u32(as_unsigned(v.lo), 16), vshrn_n_u32(as_unsigned(v.hi), 16)));
}

// Sub-scales are 32 bits; the sum of a unit is an integer.
using Scale = Ints;
using Whole = Ints;
JUNO_BOTH Scale load_scale(const void* p) { return load_bytes(p); }
JUNO_BOTH void store_scale(void* p, Scale s) { store_bytes(p, s); }
template <int kByte, bool kSigned>
JUNO_BOTH Scale scale_of(Ints bytes) {
  const Ints top = up32<24 - 8 * kByte>(bytes);
  if constexpr (kSigned) return {vshrq_n_s32(top.lo, 24), vshrq_n_s32(top.hi, 24)};
  else return down32<24>(top);
}
// Bytes 2 * kPair and the next as 16 bits, times 2^kShift.
template <int kPair, bool kSigned, int kShift>
JUNO_BOTH Bytes pair_of(Ints bytes) {
  constexpr uint32_t kPlaces = kPair ? 0x03ff02ffu : 0x01ff00ffu;  // a byte into each upper half, 0 below
  constexpr uint32_t kIndex[4] = {kPlaces, kPlaces + 0x04000400, kPlaces + 0x08000800, kPlaces + 0x0c000c00};
  const uint8x16_t index = vreinterpretq_u8_u32(vld1q_u32(kIndex));
  const uint8x16_t lo = vqtbl1q_u8(u8(bytes.lo), index), hi = vqtbl1q_u8(u8(bytes.hi), index);
  if constexpr (kSigned)
    return {vreinterpretq_s32_s16(vshrq_n_s16(vreinterpretq_s16_u8(lo), 8 - kShift)),
            vreinterpretq_s32_s16(vshrq_n_s16(vreinterpretq_s16_u8(hi), 8 - kShift))};
  else
    return bytes_of(vshrq_n_u16(vreinterpretq_u16_u8(lo), 8 - kShift),
                    vshrq_n_u16(vreinterpretq_u16_u8(hi), 8 - kShift));
}

JUNO_BOTH Ints same_four(const void* p) { return all_ints(four_at(p)); }
// sum + four bytes of each row times the four at x.
template <bool kSigned>
JUNO_BOTH Ints add_four(Ints sum, Bytes w, const void* x) {
  return dot_signed(sum, w, same_four(x));
}
JUNO_BOTH Ints add_pair(Ints sum, Bytes w, const void* x) {
  const int16x8_t both = vreinterpretq_s16_s32(same_four(x).lo);
  return {vaddq_s32(sum.lo, pair_products8(vreinterpretq_s16_s32(w.lo), both)),
          vaddq_s32(sum.hi, pair_products8(vreinterpretq_s16_s32(w.hi), both))};
}
JUNO_BOTH Whole no_whole() { return no_ints(); }
template <bool kScaled, bool kOnce, int kWidth>
JUNO_BOTH Whole fold(Whole whole, Ints part, const void* scale) {
  if constexpr (!kScaled) return plus(whole, part);
  const Scale s = load_scale(scale);
  return {vmlaq_s32(whole.lo, part.lo, s.lo), vmlaq_s32(whole.hi, part.hi, s.hi)};
}
JUNO_BOTH Floats value_of(Whole whole) { return to_floats(whole); }
JUNO_BOTH void store_panel(float* y, const float* sums, int skip, int rows) {
  for (int r = 0; r < rows; ++r) y[r] = sums[skip + r];
}

}  // namespace
}  // namespace juno::cpu

#endif
