// SPDX-License-Identifier: Apache-2.0
// Products of few tokens with float weights: docs/numerics.md §4. Included by the files of vec/ only.
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

inline constexpr int kFloatRows = kTileRows < 8 ? 2 : 8, kFloatTokens = 2;
inline constexpr int kFloatSums = kFloatRows * kFloatTokens;
inline constexpr int kFloatLevels = 3;  // sums that wait for their neighbour

// to[i] = the halving tree of sums[i].
template <class Vector>
JUNO_BOTH void add_lanes(const Vector* sums, float* to) {
  if constexpr (requires { halving_trees<kFloatSums>(sums, to); }) {
    halving_trees<kFloatSums>(sums, to);
  } else {
    for (int i = 0; i < kFloatSums; ++i) {
      float lanes[kLanes];
      store(lanes, sums[i]);
      to[i] = quant::halving_tree(lanes, kLanes);
    }
  }
}

// n elements, a group, of kFloatRows rows of weights and of some rows of activations.
template <class F>
struct FloatTile {
  const typename F::Block* w[kFloatRows];
  const float* x;
  int64_t x_stride, n;  // x_stride: between tokens
  int64_t ahead;        // from a row to the same of the next tile, which is asked for meanwhile
};

// sums[row * kTokens + token]: sixteen for each pair, element k in sum k mod 16.
template <class F, int kTokens>
JUNO_BOTH void float_sums(const FloatTile<F>& tile, Lanes* sums) {
  const int64_t n = tile.n;
#pragma GCC unroll 16
  for (int i = 0; i < kFloatRows * kTokens; ++i) sums[i] = all(0);
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    Lanes x[kTokens];
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) x[t] = load(tile.x + t * tile.x_stride + k);
#pragma GCC unroll 8
    for (int r = 0; r < kFloatRows; ++r) {
      __builtin_prefetch(tile.w[r] + k + tile.ahead);
      const Lanes w = load_weights(tile.w[r] + k);
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) sums[r * kTokens + t] = fma(w, x[t], sums[r * kTokens + t]);
    }
  }
  if (k == n) return;
  for (int i = 0; i < kFloatRows * kTokens; ++i) {
    float lanes[kLanes];
    store(lanes, sums[i]);
    for (int64_t j = k; j < n; ++j) {
      float& sum = lanes[j % kLanes];
      sum = juno::fma(F::value(tile.w[i / kTokens][j], 0), tile.x[i % kTokens * tile.x_stride + j], sum);
    }
    sums[i] = load(lanes);
  }
}

// Group g, added into the tree: waiting [kFloatLevels, kFloatSums] holds the sums that wait for their
// neighbour, after the last group the results.
template <class F, int kTokens>
[[gnu::noinline]] void float_group(const FloatTile<F>& tile, int g, float* waiting) {
  Lanes sums[kFloatSums];
  float_sums<F, kTokens>(tile, sums);
#pragma GCC unroll 16
  for (int i = kFloatRows * kTokens; i < kFloatSums; ++i) sums[i] = sums[0];
  float own[kFloatSums];
  add_lanes(sums, own);
  int level = 0;
  for (; g >> level & 1; ++level)
    for (int i = 0; i < kFloatSums; ++i) own[i] = waiting[level * kFloatSums + i] + own[i];
  if (level == kFloatLevels) level = 0;
  for (int i = 0; i < kFloatSums; ++i) waiting[level * kFloatSums + i] = own[i];
}

struct Span {
  int64_t begin, size;
};
// The elements of group g.
JUNO_BOTH Span float_span(const Product& p, int g) {
  const int64_t begin = quant::group_begin(g, p.blocks()) * p.block;
  const int64_t end = quant::group_begin(g + 1, p.blocks()) * p.block;
  return {begin, (end < p.k ? end : p.k) - begin};
}

// waiting [pairs of tokens, kFloatLevels, kFloatSums]. Each row is read from end to end: jumping from group
// to group would keep memory from running ahead.
template <class F>
JUNO_BOTH void multiply_few_floats(const Product& p, int64_t first, int64_t last, float* waiting) {
  constexpr int kWaiting = kFloatLevels * kFloatSums;
  for (int64_t o = first; o < last; o += kFloatRows) {
    for (int g = 0; g < quant::kGroups; ++g) {
      const Span group = float_span(p, g);
      FloatTile<F> tile{.w = {}, .x = nullptr, .x_stride = p.k, .n = group.size, .ahead = kFloatRows * p.k};
      for (int r = 0; r < kFloatRows; ++r) {  // past the last row, the last again
        const int64_t row = o + r < last ? o + r : last - 1;
        const auto* w = static_cast<const char*>(p.weight) + row * p.row_bytes;
        tile.w[r] = reinterpret_cast<const typename F::Block*>(w) + group.begin;
      }
      for (int t = 0; t < p.tokens; t += kFloatTokens) {
        tile.x = p.x + t * p.k + group.begin;
        float* own = waiting + t / kFloatTokens * kWaiting;
        if (t + 1 < p.tokens) float_group<F, 2>(tile, g, own);
        else float_group<F, 1>(tile, g, own);
      }
    }
    for (int t = 0; t < p.tokens; ++t) {
      const int pair = t / kFloatTokens, tokens = pair * kFloatTokens + 1 < p.tokens ? 2 : 1;
      const float* from = waiting + pair * kWaiting + t % kFloatTokens;
      float* y = p.y + t * p.outputs;
      for (int r = 0; r < kFloatRows && o + r < last; ++r)
        y[o + r] = p.bias ? from[r * tokens] + p.bias[o + r] : from[r * tokens];
    }
  }
}

}  // namespace
}  // namespace juno::cpu
