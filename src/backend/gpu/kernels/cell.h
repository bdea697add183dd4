// SPDX-License-Identifier: Apache-2.0
// A cell of 32 weights as numbers, and its products with activations as integers: what all kernels that read
// weights are made of.
#pragma once
#include "backend/gpu/kernels/layout.h"

namespace juno::gpu {

// Signed byte i of two words.
JUNO_GPU int scale_at(const uint32_t (&s)[2], int i) {
  return static_cast<int8_t>(s[i / 4] >> (8 * (i % 4)));
}

// The integer Σ v·q of cell j of the step that `scales` is of. x: the cell's activations, h: their sums
// of 16.
template <class F>
JUNO_GPU int cell_product(const uint32_t (&w)[8], const Scales& scales, int j, const uint32_t (&x)[8],
                          uint32_t h) {
  using L = Layout<F>;
  int first = 0, second = 0;
  if constexpr (L::kOffset != 0 && L::kSub == SubScales::kFor16) {
    first = -L::kOffset * static_cast<int16_t>(h);
    second = -L::kOffset * (static_cast<int32_t>(h) >> 16);
  } else if constexpr (L::kOffset != 0) {
    first = dot2(h, (256 - L::kOffset) * 0x0101u, 0);
  }
  JUNO_UNROLL
  for (int i = 0; i < 4; ++i) first = dot4(w[i], x[i], first);
  JUNO_UNROLL
  for (int i = 4; i < 8; ++i) second = dot4(w[i], x[i], second);
  if constexpr (L::kSub == SubScales::kNone) return first + second;
  if constexpr (L::kSub == SubScales::kFor32) return scale_at(scales.s, j) * (first + second);
  return scale_at(scales.s, 2 * j) * first + scale_at(scales.s, 2 * j + 1) * second;
}

// c + Σ u·h of cell j.
template <class F>
JUNO_GPU int cell_minimum(const Scales& scales, int j, uint32_t h, int c) {
  if constexpr (!quant::HasMin<F>) return c;
  if constexpr (Layout<F>::kSub == SubScales::kFor16) return dot2(h, scales.u[j / 2] >> (j % 2 * 16), c);
  const uint32_t u = scales.u[0] >> (8 * j) & 255u;
  return dot2(h, u | u << 8, c);
}

// Element i of a cell that was taken apart, as quant::value has it; j as above, i is a constant or local
// memory is used.
template <class F>
JUNO_GPU float cell_value(const uint32_t (&w)[8], const Scales& scales, int j, int i) {
  using L = Layout<F>;
  const int q = static_cast<int8_t>(w[i / 4] >> (8 * (i % 4))) - L::kOffset;
  const int at = L::kSub == SubScales::kFor16 ? 2 * j + i / 16 : j;
  const int s = L::kSub == SubScales::kNone ? 1 : scale_at(scales.s, at);
  if constexpr (quant::HasMin<F>) {
    const int u = static_cast<int>(scales.u[at / 4] >> (8 * (at % 4)) & 255u);
    return scales.d * static_cast<float>(s * q) + scales.m * static_cast<float>(u);
  } else if constexpr (L::kSub == SubScales::kNone) {
    return scales.d * static_cast<float>(q);
  } else {
    return scales.d * static_cast<float>(s) * static_cast<float>(q);
  }
}

}  // namespace juno::gpu
