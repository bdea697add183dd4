// SPDX-License-Identifier: Apache-2.0
// A row of weights times a row of activations: the contract (§3 and §4) in code. Slow, and by definition
// right.
#pragma once
#include <cstdint>

#include "base/portable.h"
#include "quant/activation.h"
#include "quant/format.h"

namespace juno::quant {

// A row's blocks are shared out among eight groups; ranks of a tensor-parallel engine own some of them.
inline constexpr int kGroups = 8;

// The first block of group g of `blocks` blocks; that of group 8 is the end.
JUNO_BOTH constexpr int64_t group_begin(int g, int64_t blocks) { return g * blocks / kGroups; }

// Neighbours are added, then neighbouring sums, until one is left. n is a power of two; x is used up.
JUNO_BOTH constexpr float neighbour_tree(float* x, int n) {
  for (; n > 1; n /= 2)
    for (int i = 0; i < n / 2; ++i) x[i] = x[2 * i] + x[2 * i + 1];
  return x[0];
}

// The upper half is added to the lower until one is left. n is a power of two; x is used up.
JUNO_BOTH constexpr float halving_tree(float* x, int n) {
  for (n /= 2; n > 0; n /= 2)
    for (int i = 0; i < n; ++i) x[i] = x[i] + x[i + n];
  return x[0];
}

// acc with activation block b of x added, for integer formats. w: the row's first block.
template <IntegerFormat F>
JUNO_BOTH float add_block(float acc, const typename F::Block* w, const ActivationRow& x, int64_t b) {
  const int64_t at = b * x.block;
  const typename F::Block& block = w[at / F::block_size];
  const int first = static_cast<int>(at % F::block_size);
  const int unit = kUnit<F> < x.block ? kUnit<F> : x.block;
  const float s = F::d(block) * x.d[b];
  for (int u = 0; u < x.block; u += unit) {
    int32_t sum = 0;
    for (int i = u; i < u + unit; ++i) sum += F::v(block, first + i) * x.q[at + i];
    acc = fma(s, static_cast<float>(sum), acc);
  }
  if constexpr (HasMin<F>) {
    int32_t sum = 0;
    for (int i = 0; i < x.block; i += kSumSize) sum += F::u(block, first + i) * x.h[(at + i) / kSumSize];
    acc = fma(F::m(block) * x.d[b], static_cast<float>(sum), acc);
  }
  return acc;
}

template <IntegerFormat F>
JUNO_BOTH float dot_group(const typename F::Block* w, const ActivationRow& x, int g) {
  const int64_t blocks = activation_blocks(x.k, x.block);
  float acc = 0.0f;
  for (int64_t b = group_begin(g, blocks); b < group_begin(g + 1, blocks); ++b)
    acc = add_block<F>(acc, w, x, b);
  return acc;
}

template <FloatFormat F>
JUNO_BOTH float dot_group(const typename F::Block* w, const ActivationRow& x, int g) {
  const int64_t blocks = activation_blocks(x.k, x.block);
  const int64_t end = group_begin(g + 1, blocks) * x.block;
  float acc[16] = {};
  for (int64_t k = group_begin(g, blocks) * x.block; k < end && k < x.k; ++k)
    acc[k % 16] = fma(F::value(w[k], 0), x.x[k], acc[k % 16]);
  return halving_tree(acc, 16);
}

// The subtree of the groups begin … end - 1, which are 8, 4, 2 or 1: one rank's share, to be added in rank
// order by neighbour_tree.
template <Format F>
JUNO_BOTH float dot_groups(const typename F::Block* w, const ActivationRow& x, int begin, int end) {
  float sums[kGroups];
  for (int g = begin; g < end; ++g) sums[g - begin] = dot_group<F>(w, x, g);
  return neighbour_tree(sums, end - begin);
}

template <Format F>
JUNO_BOTH float dot(const typename F::Block* w, const ActivationRow& x) {
  return dot_groups<F>(w, x, 0, kGroups);
}

}  // namespace juno::quant
