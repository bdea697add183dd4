// SPDX-License-Identifier: Apache-2.0
// The vocabulary of 64-bit Arm with products of matrices of bytes (ARMv8.6 I8MM): that of Neon, and products
// of eight rows of activations times eight weight rows.
#pragma once
#include "backend/cpu/vec/isa_neon_panel.h"

#if defined(__ARM_FEATURE_MATMUL_INT8)

#define JUNO_SQUARES 1

namespace juno::cpu {
namespace {

inline constexpr int kSquare = 8;  // activation rows whose sums the registers hold
static_assert(kPanelRows == 8);

template <int kDepth>
JUNO_BOTH void open_squares() {}
JUNO_BOTH void close_squares() {}

// Eight bytes of each of two rows.
JUNO_BOTH int8x16_t two_rows(const std::byte* x, int64_t stride) {
  const auto* at = reinterpret_cast<const int8_t*>(x);
  return vcombine_s8(vld1_s8(at), vld1_s8(at + stride));
}
JUNO_BOTH void store_two(int32_t* to, int32x4_t v) {
  vst1_s32(to, vget_low_s32(v));
  vst1_s32(to + kPanelRows, vget_high_s32(v));
}

// to[plane][8][8]: sums of kSize products of 8 rows x, `stride` bytes apart, and a panel's bytes q, of two
// planes w = first + 128 second.
template <int kPlanes, int kSize, bool kSigned>
JUNO_BOTH void multiply_square(const std::byte* x, int64_t stride, const std::byte* q, int64_t plane,
                               int32_t* to) {
  for (int p = 0; p < kPlanes; ++p, q += plane, to += kSquare * kPanelRows) {
    int32x4_t sums[16];  // of two tokens and two weight rows each
#pragma GCC unroll 16
    for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
    for (int i = 0; i < kSize; i += 8) {
      const Bytes first = load_bytes(q + i * kPanelRows), second = load_bytes(q + (i + 4) * kPanelRows);
      const int8x16_t w[4] = {s8(vzip1q_s32(first.lo, second.lo)), s8(vzip2q_s32(first.lo, second.lo)),
                              s8(vzip1q_s32(first.hi, second.hi)), s8(vzip2q_s32(first.hi, second.hi))};
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t) {
        const int8x16_t own = two_rows(x + 2 * t * stride + i, stride);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) sums[4 * t + r] = vmmlaq_s32(sums[4 * t + r], own, w[r]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) store_two(to + i / 4 * 2 * kPanelRows + i % 4 * 2, sums[i]);
  }
}

// A row's sub-scale beside each of its four bytes, in 16 bits: of two rows each.
struct WideScale {
  int16x8_t pairs[4];
};
JUNO_BOTH WideScale widen_scale(Scale s) {
  const int16x4_t lo = vmovn_s32(s.lo), hi = vmovn_s32(s.hi);
  return {{vcombine_s16(vdup_lane_s16(lo, 0), vdup_lane_s16(lo, 1)),
           vcombine_s16(vdup_lane_s16(lo, 2), vdup_lane_s16(lo, 3)),
           vcombine_s16(vdup_lane_s16(hi, 0), vdup_lane_s16(hi, 1)),
           vcombine_s16(vdup_lane_s16(hi, 2), vdup_lane_s16(hi, 3))}};
}
// (v - offset) times sub-scale as signed bytes of one or two planes.
template <int kPlanes>
JUNO_BOTH void store_scaled(Bytes v, int offset, const WideScale& s, std::byte* to, int64_t plane) {
  const int8x16_t by = vdupq_n_s8(static_cast<int8_t>(offset));
  const int8x16_t halves[2] = {vsubq_s8(s8(v.lo), by), vsubq_s8(s8(v.hi), by)};
  auto* const out = reinterpret_cast<int8_t*>(to);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int8x8_t own = i % 2 ? vget_high_s8(halves[i / 2]) : vget_low_s8(halves[i / 2]);
    const int16x8_t product = vmulq_s16(vmovl_s8(own), s.pairs[i]);
    if constexpr (kPlanes == 1) {
      vst1_s8(out + 8 * i, vmovn_s16(product));
    } else {
      vst1_s8(out + 8 * i, vmovn_s16(vandq_s16(product, vdupq_n_s16(127))));
      vst1_s8(out + 8 * i + plane, vshrn_n_s16(product, 7));
    }
  }
}

}  // namespace
}  // namespace juno::cpu

#endif
