// SPDX-License-Identifier: Apache-2.0
// The f32 functions of the numerics contract, §7: one text for every processor, no libm. NaN in is NaN out.
// An infinity is met as a large number would be; where that leaves one, it is kept for the caller to find.
#pragma once
#include "base/portable.h"

namespace juno {

// 2^f for |f| <= 1/2: the polynomial with the least greatest relative error among those with 1 at 0.
// Measured: 0.99 ulp, of which 0.04 are the polynomial's. Coefficients by Remez, then rounded to f32.
JUNO_BOTH float exp2_poly(float f) {
  float p = 0x1.470b48p-13f;
  p = fma(p, f, 0x1.5f7276p-10f);
  p = fma(p, f, 0x1.3b270ep-7f);
  p = fma(p, f, 0x1.c6ae72p-5f);
  p = fma(p, f, 0x1.ebfbe2p-3f);
  p = fma(p, f, 0x1.62e432p-1f);
  return fma(p, f, 1.0f);
}

// e^x, 0 below -87 and e^88 above 88. Measured: 1.2 ulp.
JUNO_BOTH float exp(float x) {
  const float top = x > 88.0f ? 88.0f : x;
  const float scaled = top * 0x1.715476p0f;  // log2(e)
  const float n = rne(scaled);
  float r = fma(n, -0x1.62e430p-1f, top);  // ln(2) in two steps; the first is exact
  r = fma(n, 0x1.05c610p-29f, r);
  const float p = exp2_poly(r * 0x1.715476p0f);
  const float y = float_of(bits_of(p) + (static_cast<uint32_t>(rne_int(scaled)) << 23));
  return x < -87.0f ? 0.0f : x != x ? x : y;
}

// Odd, -0 stays -0, +-1 from |x| = 9.02 on. Measured: 1.4 ulp.
JUNO_BOTH float tanh(float x) {
  const float a = magnitude(x);
  const float z = a * a;
  float p = -0x1.75e1d2p-8f;  // tanh(a) = a + a z p(z) below 0.625: Remez, 4.4e-9
  p = fma(p, z, 0x1.52269cp-6f);
  p = fma(p, z, -0x1.b83c5ap-5f);
  p = fma(p, z, 0x1.110726p-3f);
  p = fma(p, z, -0x1.555532p-2f);
  const float small = fma(a * z, p, a);
  const float large = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  return float_of(bits_of(a < 0.625f ? small : large) | (bits_of(x) & 0x80000000u));
}

// Never 0: below -88 it stays at 1 / e^88, a denormal. Measured: 2.3 ulp.
JUNO_BOTH float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

JUNO_BOTH float silu(float x) { return x / (1.0f + exp(-x)); }

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), written as x sigmoid(2 ...), which is the same function.
JUNO_BOTH float gelu_tanh(float x) {
  const float z = x * fma(x * x, -0x1.2444f2p-4f, -0x1.988454p0f);
  return x / (1.0f + exp(z));
}

// Odd, -0 stays -0, +-1 from |x| = 4 on. Measured: 1.1 ulp.
JUNO_BOTH float erf(float x) {
  const float a = magnitude(x);
  const float z = a * a;
  float p = 0x1.496a28p-14f;  // erf(a) = a + a p(z) below 1: Remez, 1.2e-9
  p = fma(p, z, -0x1.a3f6fcp-11f);
  p = fma(p, z, 0x1.5405b2p-8f);
  p = fma(p, z, -0x1.b7f90cp-6f);
  p = fma(p, z, 0x1.ce2cf8p-4f);
  p = fma(p, z, -0x1.81273ep-2f);
  p = fma(p, z, 0x1.06eba8p-3f);
  const float t = a > 4.0f ? 4.0f : a;
  float q = -0x1.938b12p-13f;  // -ln(1 - erf(t)) = q(t) on [0.95, 4]: Remez, 1.4e-9 of erf
  q = fma(q, t, 0x1.8a553cp-9f);
  q = fma(q, t, -0x1.69e208p-6f);
  q = fma(q, t, 0x1.a882a2p-4f);
  q = fma(q, t, 0x1.4668a6p-1f);
  q = fma(q, t, 0x1.20a232p0f);
  q = fma(q, t, 0x1.009ec6p-12f);
  const float y = a < 1.0f ? fma(a, p, a) : 1.0f - exp(-q);
  return float_of(bits_of(y) | (bits_of(x) & 0x80000000u));
}

// x/2 (1 + erf(x / sqrt(2))).
JUNO_BOTH float gelu_erf(float x) { return (0.5f * x) * (1.0f + erf(x * 0x1.6a09e6p-1f)); }

}  // namespace juno
