// SPDX-License-Identifier: Apache-2.0
// Activations for integer weights: int8 blocks with an f32 scale. The definition (numerics contract, §2).
#pragma once
#include <cstdint>

#include "base/portable.h"
#include "quant/format.h"

namespace juno::quant {

// One row of k activations as a dot product takes it: x for float formats, the rest for integer formats.
// Blocks of `block` elements, the last one filled up with zeros.
struct ActivationRow {
  const float* x = nullptr;    // [k]
  const int8_t* q = nullptr;   // [blocks * block], x = d q
  const float* d = nullptr;    // [blocks]
  const int16_t* h = nullptr;  // [blocks * block / 16], sums of q
  int64_t k = 0;
  int block = 32;
};

JUNO_BOTH constexpr int64_t activation_blocks(int64_t k, int block) { return (k + block - 1) / block; }

// n <= block elements. Below 2^-100 everything is 0, so that 127 / a stays finite. Magnitudes are compared as
// integers, which puts NaN above all: it reaches d, and cannot vanish among the integers.
JUNO_BOTH void quantise_activation_block(const float* x, int64_t n, int block, int8_t* q, float* d,
                                         int16_t* h) {
  uint32_t top = 0;
  for (int64_t i = 0; i < n; ++i) top = bits_of(magnitude(x[i])) > top ? bits_of(magnitude(x[i])) : top;
  const float a = float_of(top);
  const bool zero = a < 0x1p-100f;
  const float r = zero ? 0.0f : kMaxQ / a;
  *d = zero ? 0.0f : a / kMaxQ;
  for (int i = 0; i < block; ++i) q[i] = static_cast<int8_t>(i < n ? rne_int(x[i] * r) : 0);
  for (int j = 0; j < block / kSumSize; ++j) {
    int sum = 0;
    for (int i = 0; i < kSumSize; ++i) sum += q[j * kSumSize + i];
    h[j] = static_cast<int16_t>(sum);
  }
}

// x: [k]; q, d and h as in ActivationRow.
JUNO_BOTH void quantise_activations(const float* x, int64_t k, int block, int8_t* q, float* d, int16_t* h) {
  for (int64_t b = 0; b * block < k; ++b) {
    const int64_t n = k - b * block < block ? k - b * block : block;
    quantise_activation_block(x + b * block, n, block, q + b * block, d + b, h + b * block / kSumSize);
  }
}

// What is left of x beside d q: the second row of the profile int8x2, to be quantised in its turn.
JUNO_BOTH void activation_residual(const float* x, int64_t k, int block, const int8_t* q, const float* d,
                                   float* rest) {
  for (int64_t i = 0; i < k; ++i) rest[i] = fma(-d[i / block], static_cast<float>(q[i]), x[i]);
}

}  // namespace juno::quant
