// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 to and from f32: round to nearest even, denormals kept, NaN stays a quiet NaN of its sign.
#pragma once
#include "base/portable.h"

namespace juno {

// Exact. The bits of the half, moved into place, are the value times 2^-112 (denormals too).
JUNO_BOTH constexpr float f16_to_f32(uint16_t h) {
  const uint32_t magnitude = h & 0x7fffu;
  const uint32_t sign = (h & 0x8000u) << 16;
  const uint32_t special = (magnitude << 13) | 0x7f800000u | (magnitude > 0x7c00u ? 0x00400000u : 0u);
  const uint32_t finite = bits_of(float_of(magnitude << 13) * 0x1p112f);
  return float_of(sign | (magnitude >= 0x7c00u ? special : finite));
}

// Rounds once. A number that needs a half's denormals is rounded by an addition whose last place is 2^-24.
JUNO_BOTH constexpr uint16_t f32_to_f16(float x) {
  const uint32_t sign = bits_of(x) >> 16 & 0x8000u;
  const uint32_t magnitude = bits_of(x) & 0x7fffffffu;
  const uint32_t denormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  const uint32_t half = magnitude > 0x7f800000u    ? nan
                        : magnitude >= 0x477ff000u ? 0x7c00u  // 65520 and more round to infinity
                        : magnitude < 0x38800000u  ? denormal
                                                   : normal;
  return static_cast<uint16_t>(sign | half);
}

JUNO_BOTH constexpr float bf16_to_f32(uint16_t h) { return float_of(static_cast<uint32_t>(h) << 16); }

JUNO_BOTH constexpr uint16_t f32_to_bf16(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t quiet = bits | 0x00400000u;
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return static_cast<uint16_t>(((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) >> 16);
}

}  // namespace juno
