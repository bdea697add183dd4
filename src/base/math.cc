// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include "base/math_double.h"
#include "base/sin_cos.h"

namespace juno::f64 {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A number as an unrounded sum, |lo| far below |hi|.
struct Twin {
  double hi, lo;
};

uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
double double_of(uint64_t bits) { return __builtin_bit_cast(double, bits); }
double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

constexpr double kRounder = 0x1.8p52;
double rne(double x) { return (x + kRounder) - kRounder; }
int64_t rne_int(double x) { return static_cast<int64_t>(bits_of(x + kRounder) - bits_of(kRounder)); }

double power_of_two(int64_t n) { return double_of(static_cast<uint64_t>(n + 1023) << 52); }

// c[0] + c[1] x + … in Horner's order.
template <int N>
double polynomial(const double (&c)[N], double x) {
  double p = c[N - 1];
  for (int i = N - 2; i >= 0; --i) p = fma(p, x, c[i]);
  return p;
}

constexpr double kLn2Hi = 0x1.62e42fep-1;  // short enough for exact multiples
constexpr double kLn2Lo = 0x1.f473de6af278fp-30;

// (1 - x)^-1 … of the exponential: 1/2!, 1/3!, … 1/14!
constexpr double kExp[] = {1.0 / 2,         1.0 / 6,          1.0 / 24,         1.0 / 120,     1.0 / 720,
                           1.0 / 5040,      1.0 / 40320,      1.0 / 362880,     1.0 / 3628800, 1.0 / 39916800,
                           1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};

// e^(x.hi + x.lo)
double exp_twin(Twin x) {
  if (x.hi != x.hi) return x.hi;
  if (x.hi > 709.8) return kInfinity;
  if (x.hi < -745.2) return 0.0;
  const double scaled = x.hi * 0x1.71547652b82fep0;
  const double n = rne(scaled);
  const double head = fma(n, -kLn2Hi, x.hi);  // exact
  const double tail = fma(n, -kLn2Lo, x.lo);
  const double r = head + tail;
  const double rest = tail - (r - head);
  const double y = 1.0 + (r + fma(r * r, polynomial(kExp, r), rest));
  const int64_t k = rne_int(scaled);
  const int64_t half = k / 2;  // in two steps, so that neither factor leaves the normal range
  return y * power_of_two(half) * power_of_two(k - half);
}

// 2/3, 2/5, … 2/23: the logarithm by the inverse hyperbolic tangent, log(m) = 2 artanh((m - 1) / (m + 1)).
constexpr double kLog[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                           2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};

// For positive finite x.
Twin log_twin(double x) {
  const double up = x < 0x1p-1022 ? x * 0x1p54 : x;
  int64_t e = static_cast<int64_t>(bits_of(up) >> 52) - 1023 - (x < 0x1p-1022 ? 54 : 0);
  double m = double_of((bits_of(up) & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (m > 0x1.6a09e667f3bcdp0) {  // keep m within [sqrt(1/2), sqrt(2)]
    m *= 0.5;
    e += 1;
  }
  const double f = m - 1.0;
  const double below = m + 1.0;
  const double below_lo = m - (below - 1.0);
  const double s = f / below;
  const double s_lo = (fma(-s, below, f) - s * below_lo) / below;
  const double z = s * s;
  const double whole = static_cast<double>(e) * kLn2Hi;  // exact
  const double hi = whole + 2.0 * s;
  const double lost = e == 0 ? 0.0 : (whole - hi) + 2.0 * s;
  return {hi, lost + fma(static_cast<double>(e), kLn2Lo, fma(s * z, polynomial(kLog, z), 2.0 * s_lo))};
}

}  // namespace

SinCos sin_cos(double x) { return sin_cos_text(x); }

double exp(double x) { return exp_twin({x, 0.0}); }

double log(double x) {
  if (x != x || x < 0) return kNaN;
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  const Twin y = log_twin(x);
  return y.hi + y.lo;
}

double pow(double x, double y) {
  if (y == 0 || x == 1) return 1.0;
  if (x != x || y != y || x < 0) return kNaN;
  if (x == 0 || x == kInfinity) return (x == 0) == (y < 0) ? kInfinity : 0.0;
  const Twin l = log_twin(x);
  const double hi = l.hi * y;
  return exp_twin({hi, fma(l.hi, y, -hi) + l.lo * y});
}

}  // namespace juno::f64
