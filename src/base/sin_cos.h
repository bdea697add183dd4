// SPDX-License-Identifier: Apache-2.0
// Sine and cosine in double, for the CPU and the GPU: what f64::sin_cos of math_double.h calls.
#pragma once
#include <cstdint>

#include "base/math_double.h"
#include "base/portable.h"

namespace juno::f64 {

// r.hi + r.lo within a hair of [-pi/4, pi/4]. Coefficients: -1/3!, 1/5!, …
JUNO_BOTH double sin_kernel(double hi, double lo) {
  constexpr double c[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                          -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  const double z = hi * hi;
  double p = c[7];
  for (int i = 6; i >= 0; --i) p = __builtin_fma(p, z, c[i]);
  return hi + __builtin_fma(hi * z, p, __builtin_fma(-0.5 * z, lo, lo));
}

// 1/4!, -1/6!, …
JUNO_BOTH double cos_kernel(double hi, double lo) {
  constexpr double c[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
                          1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
  const double z = hi * hi;
  double p = c[7];
  for (int i = 6; i >= 0; --i) p = __builtin_fma(p, z, c[i]);
  const double half = 0.5 * z;
  const double head = 1.0 - half;
  const double lost = (1.0 - head) - half;
  const double squared = __builtin_fma(hi, hi, -z);
  return head + __builtin_fma(z * z, p, __builtin_fma(-hi, lo, __builtin_fma(-0.5, squared, lost)));
}

// Quarter turns are taken off in three steps.
JUNO_BOTH SinCos sin_cos_text(double x) {
  constexpr double kRounder = 0x1.8p52;
  const double turns = x * 0x1.45f306dc9c883p-1;
  const double n = (turns + kRounder) - kRounder;
  const double a = __builtin_fma(-n, 0x1.921fb54442d18p0, x);  // exact
  const double b = n * 0x1.1a62633145c07p-54;
  const double b_lo = __builtin_fma(n, 0x1.1a62633145c07p-54, -b);
  const double hi = a - b;
  const double lo = ((a - hi) - b) - __builtin_fma(n, -0x1.f1976b7ed8fbcp-110, b_lo);
  const double s = sin_kernel(hi, lo), c = cos_kernel(hi, lo);
  const auto quarter = static_cast<uint32_t>(__builtin_bit_cast(uint64_t, turns + kRounder)) & 3u;
  const double sine = quarter % 2 == 0 ? s : c, cosine = quarter % 2 == 0 ? c : s;
  return {quarter < 2 ? sine : -sine, quarter == 0 || quarter == 3 ? cosine : -cosine};
}

}  // namespace juno::f64
