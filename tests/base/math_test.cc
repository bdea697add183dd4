// SPDX-License-Identifier: Apache-2.0
#include "base/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/bits.h"
#include "base/math_double.h"

namespace juno {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Every 1009th f32 of [low, high], both signs.
template <class F>
void for_floats(float low, float high, F&& visit) {
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += 1009)
    for (uint32_t sign : {0u, 0x80000000u})
      if (const float x = float_of(bits | sign); low <= x && x <= high) visit(x);
}

template <class F, class G>
double worst_ulps(float low, float high, F&& ours, G&& truth) {
  double worst = 0;
  for_floats(low, high, [&](float x) { worst = std::fmax(worst, test::ulps(ours(x), truth(x))); });
  return worst;
}

// The largest error as a share of max(1, |x|): for functions that vanish where they are not small in x.
template <class F, class G>
double worst_share(float low, float high, F&& ours, G&& truth) {
  double worst = 0;
  for_floats(low, high, [&](float x) {
    worst =
        std::fmax(worst, static_cast<double>(std::fabs(ours(x) - truth(x)) / std::fmax(1.0f, std::fabs(x))));
  });
  return worst;
}

long double true_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double true_gelu_tanh(long double x) {
  return x * true_sigmoid(2 * std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x));
}
long double true_gelu_erf(long double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0L)); }

TEST(Math, RneGoesToTheNearestIntegerAndTiesToEven) {
  for (float x : {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999997f, 126.5f, -127.5f, 4194303.5f, 0.0f, 3.25f}) {
    EXPECT_EQ(rne(x), std::nearbyint(x));
    EXPECT_EQ(rne_int(x), static_cast<int>(std::nearbyint(x)));
  }
}

TEST(Math, Exp2PolyIsWithinOneUlpAndExactAtZero) {
  EXPECT_LE(worst_ulps(-0.5f, 0.5f, exp2_poly, [](long double x) { return std::exp2(x); }), 1.0);
  EXPECT_EQ(exp2_poly(0.0f), 1.0f);
  EXPECT_EQ(exp2_poly(-0.0f), 1.0f);
}

TEST(Math, ExpIsWithin1_2Ulp) {
  EXPECT_LE(worst_ulps(-87.0f, 88.0f, static_cast<float (*)(float)>(exp),
                       [](long double x) { return std::exp(x); }),
            1.2);
}

TEST(Math, ExpIsZeroBelowMinus87AndConstantAbove88) {
  EXPECT_GT(exp(-87.0f), 1e-38f);
  EXPECT_EQ(bits_of(exp(std::nextafter(-87.0f, -kInf))), 0u);
  EXPECT_EQ(bits_of(exp(-kInf)), 0u);
  EXPECT_EQ(exp(88.5f), exp(88.0f));
  EXPECT_EQ(exp(kInf), exp(88.0f));
  EXPECT_EQ(exp(-0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(exp(kNaN)));
}

TEST(Math, TanhIsWithin1_4UlpAndOdd) {
  EXPECT_LE(worst_ulps(-20.0f, 20.0f, static_cast<float (*)(float)>(tanh),
                       [](long double x) { return std::tanh(x); }),
            1.4);
  for_floats(0.0f, 20.0f, [](float x) { ASSERT_EQ(bits_of(tanh(-x)), bits_of(-tanh(x))); });
  EXPECT_EQ(bits_of(tanh(-0.0f)), 0x80000000u);
}

TEST(Math, TanhSaturatesAtOne) {
  for (float x : {9.02f, 44.0f, 1e30f, kInf}) EXPECT_EQ(tanh(x), 1.0f) << x;
  EXPECT_EQ(tanh(-kInf), -1.0f);
  EXPECT_TRUE(std::isnan(tanh(kNaN)));
}

TEST(Math, SigmoidAndSiluAreWithin2_3Ulp) {
  EXPECT_LE(worst_ulps(-87.0f, 1e4f, sigmoid, true_sigmoid), 2.3);
  EXPECT_LE(worst_ulps(-87.0f, 1e4f, silu, [](long double x) { return x * true_sigmoid(x); }), 2.3);
}

TEST(Math, SigmoidAndSiluHaveDefinedEnds) {
  EXPECT_EQ(sigmoid(kInf), 1.0f);
  EXPECT_EQ(sigmoid(-kInf), 1.0f / (1.0f + exp(88.0f)));
  EXPECT_EQ(sigmoid(0.0f), 0.5f);
  EXPECT_EQ(bits_of(silu(-0.0f)), 0x80000000u);
  EXPECT_EQ(silu(kInf), kInf);
  EXPECT_EQ(silu(-kInf), -kInf);  // kept, so that the caller's check finds it
  EXPECT_TRUE(std::isnan(sigmoid(kNaN)) && std::isnan(silu(kNaN)));
}

TEST(Math, GeluTanhIsWithin1_2e7OfTheTruth) {
  EXPECT_LE(worst_share(-1e4f, 1e4f, gelu_tanh, true_gelu_tanh), 1.2e-7);
  EXPECT_LE(worst_ulps(-1.0f, 1e4f, gelu_tanh, true_gelu_tanh), 5);
}

TEST(Math, GeluErfIsWithin1_1e7OfTheTruth) {
  EXPECT_LE(worst_share(-1e4f, 1e4f, gelu_erf, true_gelu_erf), 1.1e-7);
  EXPECT_LE(worst_ulps(-0.5f, 1e4f, gelu_erf, true_gelu_erf), 5);
}

TEST(Math, GeluHasDefinedEnds) {
  for (float (*gelu)(float) : {+gelu_tanh, +gelu_erf}) {
    EXPECT_EQ(bits_of(gelu(-0.0f)), 0x80000000u);
    EXPECT_EQ(gelu(0.0f), 0.0f);
    EXPECT_EQ(gelu(1e30f), 1e30f);
    EXPECT_EQ(gelu(kInf), kInf);
    EXPECT_FALSE(std::isfinite(gelu(-kInf)));  // kept, so that the caller's check finds it
    EXPECT_TRUE(std::isnan(gelu(kNaN)));
  }
}

TEST(Math, ErfIsWithin1_1UlpOddAndSaturates) {
  EXPECT_LE(worst_ulps(-10.0f, 10.0f, static_cast<float (*)(float)>(erf),
                       [](long double x) { return std::erf(x); }),
            1.1);
  for_floats(0.0f, 10.0f, [](float x) { ASSERT_EQ(bits_of(erf(-x)), bits_of(-erf(x))); });
  for (float x : {4.0f, 1e30f, kInf}) EXPECT_EQ(erf(x), 1.0f) << x;
  EXPECT_TRUE(std::isnan(erf(kNaN)));
}

// Other compilers, processors and optimisation levels must give these very bits.
TEST(Math, BitsArePinned) {
  test::Hash hash;
  for_floats(-120.0f, 120.0f, [&](float x) {
    for (float y : {exp(x), tanh(x), sigmoid(x), silu(x), gelu_tanh(x), erf(x), gelu_erf(x)}) hash.add(y);
    if (std::fabs(x) <= 0.5f) hash.add(exp2_poly(x));
  });
  EXPECT_EQ(hash.value(), 0x3c795a3c2891ee29u);
}

// Deterministic samples: x = 2^-20 … 2^23, and near the multiples of pi/2, where sine or cosine nearly
// vanishes.
template <class F>
void for_angles(F&& visit) {
  for (int i = 0; i < 200000; ++i)
    visit(std::ldexp(1.0 + i * 0x1.9e3779p-18, i % 43 - 20) * (i % 2 ? 1 : -1));
  for (int n = 1; n < 6000000; n += 997) visit(n * 0x1.921fb54442d18p0);
}

TEST(MathDouble, SinAndCosAreWithinOneUlpUpTo2ToThe23) {
  double worst = 0;
  for_angles([&](double x) {
    if (std::fabs(x) > 0x1p23) return;
    const f64::SinCos y = f64::sin_cos(x);
    const auto exact = static_cast<long double>(x);
    worst =
        std::fmax(worst, std::fmax(test::ulps(y.sin, std::sin(exact)), test::ulps(y.cos, std::cos(exact))));
  });
  EXPECT_LE(worst, 0.8);
}

TEST(MathDouble, ExpLogAndPowAreWithinOneUlp) {
  double worst_exp = 0, worst_log = 0, worst_pow = 0;
  for (int i = -70000; i <= 70000; ++i) {
    const double x = i * 0x1.4p-7 + i * 0x1p-40;
    if (std::fabs(x) < 708)
      worst_exp = std::fmax(worst_exp, test::ulps(f64::exp(x), std::exp(static_cast<long double>(x))));
    const double y = std::ldexp(1.0 + std::fabs(i * 0x1.e377p-18), i % 1000);
    worst_log = std::fmax(worst_log, test::ulps(f64::log(y), std::log(static_cast<long double>(y))));
    const double base = 1.0 + 0x1p-10 * i * i, power = i * 0x1p-17;
    worst_pow = std::fmax(
        worst_pow, test::ulps(f64::pow(base, power),
                              std::pow(static_cast<long double>(base), static_cast<long double>(power))));
  }
  EXPECT_LE(worst_exp, 0.9);
  EXPECT_LE(worst_log, 0.6);
  EXPECT_LE(worst_pow, 0.9);
}

TEST(MathDouble, EndsAreDefined) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(f64::exp(0.0), 1.0);
  EXPECT_EQ(f64::exp(710.0), inf);
  EXPECT_EQ(f64::exp(-746.0), 0.0);
  EXPECT_EQ(f64::exp(-inf), 0.0);
  EXPECT_EQ(f64::exp(inf), inf);
  EXPECT_EQ(f64::log(1.0), 0.0);
  EXPECT_EQ(f64::log(0.0), -inf);
  EXPECT_EQ(f64::log(inf), inf);
  EXPECT_TRUE(std::isnan(f64::log(-1.0)));
  EXPECT_LE(test::ulps(f64::log(0x1p-1074), std::log(0x1p-1074L)), 0.6);
  EXPECT_EQ(f64::pow(0.0, 2.0), 0.0);
  EXPECT_EQ(f64::pow(0.0, -2.0), inf);
  EXPECT_EQ(f64::pow(inf, -1.0), 0.0);
  EXPECT_EQ(f64::pow(7.0, 0.0), 1.0);
  EXPECT_EQ(f64::pow(2.0, -10.0), 0x1p-10);
  EXPECT_TRUE(std::isnan(f64::pow(-1.0, 0.5)));
  EXPECT_EQ(f64::sin_cos(0.0).sin, 0.0);
  EXPECT_EQ(f64::sin_cos(0.0).cos, 1.0);
  EXPECT_TRUE(std::isnan(f64::sin_cos(inf).sin) && std::isnan(f64::sin_cos(inf).cos));
}

TEST(MathDouble, BitsArePinned) {
  test::Hash hash;
  for_angles([&](double x) {
    const f64::SinCos y = f64::sin_cos(x);
    for (double v : {y.sin, y.cos, f64::exp(x), f64::log(std::fabs(x)), f64::pow(std::fabs(x), -0.75)})
      hash.add(v);
  });
  EXPECT_EQ(hash.value(), 0xcc89b4e9e39edd5cu);
}

}  // namespace
}  // namespace juno
