// SPDX-License-Identifier: Apache-2.0
// What text shared by every instruction set and the GPU is written in: bits, fma and rounding of f32.
// Always inlined, so that an object compiled for one instruction set lends no code to another.
#pragma once
#include <cstdint>

// A GPU's vocabulary defines it as its own before it includes this.
#ifndef JUNO_BOTH
#define JUNO_BOTH [[gnu::always_inline]] inline
#endif

namespace juno {

JUNO_BOTH constexpr uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
JUNO_BOTH constexpr float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

JUNO_BOTH constexpr float magnitude(float x) { return float_of(bits_of(x) & 0x7fffffffu); }

// a * b + c with one rounding. A processor without the instruction gets the C library's exact one.
JUNO_BOTH float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// Adding 1.5 * 2^23 leaves no room for a fraction: the sum's low bits are the nearest integer, ties to even.
inline constexpr float kRounder = 0x1.8p23f;

// The nearest integer, ties to even, for |x| <= 2^22.
JUNO_BOTH constexpr float rne(float x) { return (x + kRounder) - kRounder; }

// The same as an integer. Any other x, NaN too, gives some integer and nothing undefined.
JUNO_BOTH constexpr int32_t rne_int(float x) {
  return static_cast<int32_t>(bits_of(x + kRounder) - bits_of(kRounder));
}

}  // namespace juno
