// SPDX-License-Identifier: Apache-2.0
#include "quant/activation.h"

#include "base/bits.h"
#include "quant/support.h"

namespace juno::quant {
namespace {

using test::Activations;
using test::Random;

TEST(Activation, QIsTheNearestIntegerOfXTimes127OverTheLargest) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f, x[1] = 0.5f, x[2] = 1.5f, x[3] = -2.5f, x[4] = -126.75f;
  const Activations a(x, 32);
  EXPECT_EQ(a.d[0], 1.0f);
  EXPECT_EQ(a.q[0], 127);
  EXPECT_EQ(a.q[1], 0);  // ties to even
  EXPECT_EQ(a.q[2], 2);
  EXPECT_EQ(a.q[3], -2);
  EXPECT_EQ(a.q[4], -127);
  EXPECT_EQ(a.h[0], 127 + 0 + 2 - 2 - 127);
  EXPECT_EQ(a.h[1], 0);
}

TEST(Activation, ABlockBelow2ToTheMinus100IsZero) {
  const Activations tiny(std::vector<float>(32, std::nextafter(0x1p-100f, 0.0f)), 32);
  EXPECT_EQ(bits_of(tiny.d[0]), 0u);
  EXPECT_EQ(tiny.q[0], 0);
  const Activations least(std::vector<float>(32, -0x1p-100f), 32);
  EXPECT_EQ(least.d[0], 0x1p-100f / 127);
  EXPECT_EQ(least.q[0], -127);
}

TEST(Activation, TheLastBlockIsFilledUpWithZeros) {
  const Activations a(std::vector<float>(70, 1.0f), 64);
  ASSERT_EQ(a.d.size(), 2u);
  EXPECT_EQ(a.q[69], 127);
  for (size_t i = 70; i < 128; ++i) ASSERT_EQ(a.q[i], 0);
  EXPECT_EQ(a.h[3], 16 * 127);
  EXPECT_EQ(a.h[4], 6 * 127);
  EXPECT_EQ(a.h[7], 0);
}

TEST(Activation, QStaysWithin127AndDQWithinHalfAStepAtEveryMagnitude) {
  Random random(1);
  for (int n = 0; n < 20000; ++n) {
    std::vector<float> x(32);
    const float scale = std::ldexp(1.0f, static_cast<int>(random.word() % 226) - 99);
    for (float& v : x) v = random.between(-1.0f, 1.0f) * scale;
    const Activations a(x, 32);
    for (size_t i = 0; i < 32; ++i) {
      ASSERT_LE(std::abs(a.q[i]), kMaxQ);
      ASSERT_LE(std::fabs(double{a.d[0]} * a.q[i] - x[i]), a.d[0] * (0.5 + 127 * 0x1p-22)) << x[i];
    }
  }
}

TEST(Activation, HIsTheSumOf16) {
  Random random(2);
  for (int block : {32, 64, 128}) {
    const Activations a(test::random_floats(random, 1024), block);
    for (size_t j = 0; j < a.h.size(); ++j) {
      int sum = 0;
      for (size_t i = 16 * j; i < 16 * j + 16; ++i) sum += a.q[i];
      ASSERT_EQ(a.h[j], sum);
    }
  }
}

TEST(Activation, TheResidualIsExactAndTwoRowsLeave128TimesLessThanOne) {
  Random random(3);
  const std::vector<float> x = test::random_floats(random, 1024);
  const Activations high(x, 128);
  std::vector<float> rest(x.size());
  activation_residual(x.data(), 1024, 128, high.q.data(), high.d.data(), rest.data());
  const Activations low(rest, 128);
  for (size_t i = 0; i < x.size(); ++i) {
    const float dq = high.d[i / 128], lo = low.d[i / 128];
    ASSERT_EQ(rest[i], static_cast<float>(double{x[i]} - double{dq} * high.q[i]));
    ASSERT_LE(std::fabs(rest[i]), dq * 0.5001f);
    ASSERT_LE(std::fabs(double{x[i]} - double{dq} * high.q[i] - double{lo} * low.q[i]), dq * 0.5001 / 253);
  }
}

TEST(Activation, NaNAndInfinityReachTheScale) {
  for (size_t at : {0u, 17u, 31u}) {
    std::vector<float> x(32, 2.0f);
    x[at] = NAN;
    EXPECT_TRUE(std::isnan(Activations(x, 32).d[0]));
    x[at] = -INFINITY;
    EXPECT_EQ(Activations(x, 32).d[0], INFINITY);
  }
}

TEST(Activation, BitsArePinned) {
  Random random(4);
  juno::test::Hash hash;
  for (int block : {32, 64, 128}) {
    const Activations a(test::random_floats(random, 4000), block);
    for (float d : a.d) hash.add(d);
    for (int8_t q : a.q) hash.add(static_cast<uint8_t>(q), 1);
    for (int16_t h : a.h) hash.add(static_cast<uint16_t>(h), 2);
  }
  EXPECT_EQ(hash.value(), 0x99af6b2aca58b82fu);
}

}  // namespace
}  // namespace juno::quant
