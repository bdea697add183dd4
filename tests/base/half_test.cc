// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace juno {
namespace {

double half_by_definition(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const double size = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return h & 0x8000 ? -size : size;
}

bool is_nan16(uint16_t h) { return (h & 0x7fff) > 0x7c00; }

TEST(Half, EveryFiniteHalfBecomesItsExactValue) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    if ((h & 0x7c00) == 0x7c00) continue;
    const double want = half_by_definition(static_cast<uint16_t>(h));
    const float got = f16_to_f32(static_cast<uint16_t>(h));
    ASSERT_EQ(got, want) << h;
    ASSERT_EQ(std::signbit(got), std::signbit(want)) << h;
  }
}

TEST(Half, EveryHalfButSignallingNaNsReturnsUnchanged) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const auto half = static_cast<uint16_t>(h);
    const bool signalling = is_nan16(half) && !(half & 0x0200);
    ASSERT_EQ(f32_to_f16(f16_to_f32(half)), signalling ? half | 0x0200 : half) << h;
    ASSERT_EQ(std::isnan(f16_to_f32(half)), is_nan16(half)) << h;
  }
}

TEST(Half, MidpointsGoToTheEvenNeighbourAndTheirNeighboursToTheNearer) {
  for (uint32_t h = 0; h < 0x7c00; ++h) {
    const auto low = static_cast<uint16_t>(h), high = static_cast<uint16_t>(h + 1);
    const double above = h == 0x7bff ? 65536.0 : f16_to_f32(high);
    const auto middle = static_cast<float>((f16_to_f32(low) + above) / 2);  // exact
    ASSERT_EQ(f32_to_f16(middle), h % 2 ? high : low) << h;
    ASSERT_EQ(f32_to_f16(-middle), (h % 2 ? high : low) | 0x8000) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), low) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), high) << h;
  }
}

TEST(Half, LargeNumbersAndNaNsKeepTheirKind) {
  EXPECT_EQ(f32_to_f16(3e38f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-INFINITY), 0xfc00);
  EXPECT_EQ(f32_to_f16(float_of(0x7f800001u)), 0x7e00);
  EXPECT_EQ(f32_to_f16(float_of(0xffc00000u)), 0xfe00);
  EXPECT_EQ(bits_of(f16_to_f32(0xfc00)), 0xff800000u);
}

TEST(Bf16, EveryBf16ButSignallingNaNsReturnsUnchanged) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const bool signalling = (h & 0x7fff) > 0x7f80 && !(h & 0x0040);
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(static_cast<uint16_t>(h))), signalling ? h | 0x0040 : h);
  }
}

TEST(Bf16, MidpointsGoToTheEvenNeighbourAndTheirNeighboursToTheNearer) {
  for (uint32_t h = 0; h < 0x7f80; ++h) {
    const uint32_t middle = h << 16 | 0x8000u;
    ASSERT_EQ(f32_to_bf16(float_of(middle)), h + h % 2);
    ASSERT_EQ(f32_to_bf16(float_of(middle - 1)), h);
    ASSERT_EQ(f32_to_bf16(float_of(middle + 1)), h + 1);
  }
}

TEST(Half, CanBeUsedInConstantExpressions) {
  static_assert(f16_to_f32(0x3c00) == 1.0f && f32_to_f16(-2.0f) == 0xc000);
  static_assert(bf16_to_f32(0x3f80) == 1.0f && f32_to_bf16(1.0f) == 0x3f80);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
}

}  // namespace
}  // namespace juno
