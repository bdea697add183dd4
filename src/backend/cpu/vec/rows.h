// SPDX-License-Identifier: Apache-2.0
// Norms, rotary embedding and the elementwise verbs: docs/numerics.md §5 and §7. Included by vec/kernels.cc
// only.
#pragma once
#include "backend/cpu/kernels.h"
#include "base/math.h"
#include "quant/dot.h"

namespace juno::cpu {
namespace {

inline constexpr int kNormSlots = 256;

// Slot i mod 256 takes element i of x, shifted by `mean`: its square, or, with kSquare off, itself.
template <bool kSquare>
JUNO_BOTH float slot_sum(const float* x, int64_t n, float mean, bool centred) {
  float slots[kNormSlots] = {};
  for (int64_t at = 0; at < n; at += kNormSlots) {
    const int count = n - at < kNormSlots ? static_cast<int>(n - at) : kNormSlots;
    for (int j = 0; j < count; ++j) {
      const float c = centred ? x[at + j] - mean : x[at + j];
      slots[j] = kSquare ? fma(c, c, slots[j]) : slots[j] + c;
    }
  }
  return quant::halving_tree(slots, kNormSlots);
}

void norm(float* y, const float* x, int64_t runs, const NormRun& w) {
  const float count = static_cast<float>(w.n);
  for (int64_t run = 0; run < runs; ++run, x += w.n, y += w.n) {
    const float mean = w.centred ? slot_sum<false>(x, w.n, 0, false) / count : 0.0f;
    const float squares = slot_sum<true>(x, w.n, mean, w.centred);
    const float r = 1.0f / __builtin_sqrtf(squares / count + w.eps);
    for (int64_t i = 0; i < w.n; ++i) y[i] = ((w.centred ? x[i] - mean : x[i]) * r) * w.weight[i];
    if (!w.bias) continue;
    for (int64_t i = 0; i < w.n; ++i) y[i] = y[i] + w.bias[i];
  }
}

void rope(float* y, const float* x, const float* turn, const RopeHeads& shape) {
  const auto [heads, head_dim, pairs, interleaved] = shape;
  const float* sines = turn + pairs;
  for (int h = 0; h < heads; ++h, x += head_dim, y += head_dim) {
    const int step = interleaved ? 2 : 1, other = interleaved ? 1 : pairs;
    for (int i = 0; i < pairs; ++i) {
      const float x0 = x[i * step], x1 = x[i * step + other];
      y[i * step] = fma(x0, turn[i], -(x1 * sines[i]));
      y[i * step + other] = fma(x0, sines[i], x1 * turn[i]);
    }
    for (int i = 2 * pairs; i < head_dim; ++i) y[i] = x[i];
  }
}

void gated_silu(float* y, const float* gate, const float* up, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = silu(gate[i]) * up[i];
}
void gated_gelu_tanh(float* y, const float* gate, const float* up, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = gelu_tanh(gate[i]) * up[i];
}
void gated_gelu_erf(float* y, const float* gate, const float* up, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = gelu_erf(gate[i]) * up[i];
}

void add(float* y, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}
void scale(float* y, const float* x, float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor;
}
void softcap(float* y, const float* x, float cap, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = tanh(x[i] / cap) * cap;
}
void add_scaled(float* y, const float* x, float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = fma(factor, x[i], y[i]);
}

bool finite(const float* x, int64_t n) {
  uint32_t top = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = bits_of(x[i]) & 0x7fffffffu;
    top = bits > top ? bits : top;
  }
  return top < 0x7f800000u;
}

}  // namespace
}  // namespace juno::cpu
