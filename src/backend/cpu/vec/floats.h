// SPDX-License-Identifier: Apache-2.0
// Products with float weights: docs/numerics.md §4. Included by the files of vec/ only.
#pragma once
#include "backend/cpu/kernels.h"
#include "backend/cpu/vec/vocabulary.h"
#include "quant/dot.h"
#include "quant/formats.h"

namespace juno::cpu {
namespace {

// Sixteen weights of a row as f32.
JUNO_BOTH Lanes load_weights(const quant::F32::Block* w) { return load(&w->x); }
JUNO_BOTH Lanes load_weights(const quant::F16::Block* w) { return load_f16(&w->x); }
JUNO_BOTH Lanes load_weights(const quant::BF16::Block* w) { return load_bf16(&w->x); }

inline constexpr int kFloatRows = kTileRows / 2 < 2 ? 2 : kTileRows / 2;

// Group g of rows of weights times rows of activations: sixteen sums for each pair, element k in sum k
// mod 16.
template <class F, int kTokens>
JUNO_BOTH void float_group(const Product& p, const typename F::Block* const* w, const float* const* x, int g,
                           float (*y)[kTokens]) {
  const int64_t past = quant::group_begin(g + 1, p.blocks()) * p.block, end = past < p.k ? past : p.k;
  int64_t i = quant::group_begin(g, p.blocks()) * p.block;
  Lanes acc[kFloatRows][kTokens];
  for (auto& row : acc)
    for (Lanes& sum : row) sum = all(0);
  for (; i + kLanes <= end; i += kLanes) {
    Lanes of[kTokens];
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) of[t] = load(x[t] + i);
#pragma GCC unroll 4
    for (int r = 0; r < kFloatRows; ++r) {
      const Lanes weights = load_weights(w[r] + i);
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) acc[r][t] = fma(weights, of[t], acc[r][t]);
    }
  }
  for (int r = 0; r < kFloatRows; ++r) {
    for (int t = 0; t < kTokens; ++t) {
      float sums[kLanes];
      store(sums, acc[r][t]);
      for (int64_t j = i; j < end; ++j)
        sums[j % kLanes] = juno::fma(F::value(w[r][j], 0), x[t][j], sums[j % kLanes]);
      y[r][t] = quant::halving_tree(sums, kLanes);
    }
  }
}

// y [kTokens, outputs] at the tokens from t on and the rows from o on.
template <class F, int kTokens>
[[gnu::noinline]] void multiply_floats(const Product& p, const typename F::Block* const* w, int t, int64_t o,
                                       int64_t last) {
  const float* x[kTokens];
  for (int i = 0; i < kTokens; ++i) x[i] = p.x + (t + i) * p.k;
  float sums[quant::kGroups][kFloatRows][kTokens];
  for (int g = 0; g < quant::kGroups; ++g) float_group<F, kTokens>(p, w, x, g, sums[g]);
  for (int r = 0; r < kFloatRows && o + r < last; ++r) {
    for (int i = 0; i < kTokens; ++i) {
      float tree[quant::kGroups];
      for (int g = 0; g < quant::kGroups; ++g) tree[g] = sums[g][r][i];
      const float y = quant::neighbour_tree(tree, quant::kGroups);
      p.y[(t + i) * p.outputs + o + r] = p.bias ? y + p.bias[o + r] : y;
    }
  }
}

template <class F>
JUNO_BOTH void multiply_float_rows(const Product& p, const typename F::Block* const* w, int64_t o,
                                   int64_t last) {
  int t = 0;
  for (; t + 2 <= p.tokens; t += 2) multiply_floats<F, 2>(p, w, t, o, last);
  if (t < p.tokens) multiply_floats<F, 1>(p, w, t, o, last);
}

// For many tokens a row is widened once.
template <quant::FloatFormat F>
void multiply(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  for (int64_t o = first; o < last; o += kFloatRows) {
    const typename F::Block* w[kFloatRows];
    const quant::F32::Block* wide[kFloatRows];
    for (int r = 0; r < kFloatRows; ++r) {
      const int64_t own = o + r < last ? o + r : last - 1;
      w[r] =
          reinterpret_cast<const typename F::Block*>(static_cast<const char*>(p.weight) + own * p.row_bytes);
      auto* to = reinterpret_cast<quant::F32::Block*>(scratch) + r * p.k;
      wide[r] = to;
      if (p.many())
        for (int64_t i = 0; i < p.k; ++i) to[i].x = F::value(w[r][i], 0);
    }
    if (p.many()) multiply_float_rows<quant::F32>(p, wide, o, last);
    else multiply_float_rows<F>(p, w, o, last);
  }
}

}  // namespace
}  // namespace juno::cpu
