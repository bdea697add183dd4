// SPDX-License-Identifier: Apache-2.0
// f64 functions for tables (RoPE angles): no libm, the same bits from every compiler, errors below 1 ulp.
#pragma once

namespace juno::f64 {

struct SinCos {
  double sin, cos;
};

// For |x| <= 2^23; beyond that accuracy fades. NaN for an infinity.
SinCos sin_cos(double x);

double exp(double x);

// Natural logarithm; -infinity at 0, NaN below.
double log(double x);

// x^y for x >= 0, NaN below; 1 when y is 0.
double pow(double x, double y);

}  // namespace juno::f64
