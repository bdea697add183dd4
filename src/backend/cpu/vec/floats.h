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

// Elements [begin, end) of kFloatRows rows of weights and of some rows of activations.
template <class F>
struct FloatTile {
  const typename F::Block* w[kFloatRows];  // at begin
  const float* x;                          // at begin
  int64_t x_stride;                        // elements between tokens
  int64_t begin, end;
};

// sums[row * kTokens + token]: sixteen for each pair, element k in sum k mod 16.
template <class F, int kTokens>
JUNO_BOTH void float_sums(const FloatTile<F>& tile, Lanes* sums) {
  const int64_t n = tile.end - tile.begin;
#pragma GCC unroll 16
  for (int i = 0; i < kFloatRows * kTokens; ++i) sums[i] = all(0);
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    Lanes x[kTokens];
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) x[t] = load(tile.x + t * tile.x_stride + k);
#pragma GCC unroll 8
    for (int r = 0; r < kFloatRows; ++r) {
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
      float& sum = lanes[(tile.begin + j) % kLanes];
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

// Outputs [first, last) of tokens [token, token + count).
struct FloatItem {
  int64_t first, last;
  int token, count;
  const float* x;  // of the first token
  float* waiting;  // [rows / kFloatRows, pairs of tokens, kFloatLevels, kFloatSums]
  float* wide;     // [rows, elements of a group]: weights that are widened once for all tokens
  JUNO_BOTH int64_t pairs() const { return (count + 1) / kFloatTokens; }
};

inline constexpr int kNearTokens = 16;  // whose part of a group stays in the first cache

// kFloatRows rows from the item's row `row` on times tokens [from, to) of the item.
template <class F>
JUNO_BOTH void float_tokens(const FloatItem& item, FloatTile<F>& tile, int64_t row, int from, int to, int g) {
  float* waiting =
      item.waiting + (row / kFloatRows * item.pairs() + from / kFloatTokens) * kFloatLevels * kFloatSums;
  for (int t = from; t < to; t += kFloatTokens, waiting += kFloatLevels * kFloatSums) {
    tile.x = item.x + t * tile.x_stride + tile.begin;
    if (t + 1 < to) float_group<F, 2>(tile, g, waiting);
    else float_group<F, 1>(tile, g, waiting);
  }
}

// Group g of all rows. Source(row): where its elements begin; past the last row, the last again.
template <class F, class Source>
JUNO_BOTH void float_rows(const FloatItem& item, FloatTile<F>& tile, int g, Source&& source) {
  const int64_t rows = item.last - item.first;
  for (int from = 0; from < item.count; from += kNearTokens) {
    const int to = from + kNearTokens < item.count ? from + kNearTokens : item.count;
    for (int64_t row = 0; row < rows; row += kFloatRows) {
      for (int r = 0; r < kFloatRows; ++r) tile.w[r] = source(row + r < rows ? row + r : rows - 1);
      float_tokens<F>(item, tile, row, from, to, g);
    }
  }
}

template <class F>
JUNO_BOTH void multiply_float_group(const Product& p, const FloatItem& item, int g) {
  const int64_t past = quant::group_begin(g + 1, p.blocks()) * p.block;
  const int64_t begin = quant::group_begin(g, p.blocks()) * p.block, end = past < p.k ? past : p.k;
  const auto file = [&](int64_t row) {
    const auto* w = static_cast<const char*>(p.weight) + (item.first + row) * p.row_bytes;
    return reinterpret_cast<const typename F::Block*>(w) + begin;
  };
  if (!p.many()) {
    FloatTile<F> tile{.w = {}, .x = nullptr, .x_stride = p.k, .begin = begin, .end = end};
    return float_rows<F>(item, tile, g, file);
  }
  const auto wide = [&](int64_t row) {
    return reinterpret_cast<quant::F32::Block*>(item.wide + row * p.chunk());
  };
  for (int64_t row = 0; row < item.last - item.first; ++row) {
    int64_t i = 0;
    for (; i + kLanes <= end - begin; i += kLanes) store(&wide(row)[i].x, load_weights(file(row) + i));
    for (; i < end - begin; ++i) wide(row)[i].x = F::value(file(row)[i], 0);
  }
  FloatTile<quant::F32> tile{.w = {}, .x = nullptr, .x_stride = p.k, .begin = begin, .end = end};
  float_rows<quant::F32>(item, tile, g, wide);
}

JUNO_BOTH void store_floats(const Product& p, const FloatItem& item) {
  const float* from = item.waiting;
  for (int64_t o = item.first; o < item.last; o += kFloatRows)
    for (int t = 0; t < item.count; t += kFloatTokens, from += kFloatLevels * kFloatSums) {
      const int tokens = t + 1 < item.count ? 2 : 1;
      for (int i = 0; i < tokens; ++i) {
        float* y = p.y + (item.token + t + i) * p.outputs;
        for (int r = 0; r < kFloatRows && o + r < item.last; ++r)
          y[o + r] = p.bias ? from[r * tokens + i] + p.bias[o + r] : from[r * tokens + i];
      }
    }
}

// For many tokens a group at a time, so that their activations are near while rows come and go. For few a row
// is read from end to end: jumping from group to group would keep memory from running ahead.
template <quant::FloatFormat F>
void multiply(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  FloatItem item;
  item.wide = reinterpret_cast<float*>(scratch);
  item.waiting = item.wide + (p.many() ? kItemRows * p.chunk() : 0);
  const int64_t together = p.many() ? kItemRows : kFloatRows;
  for (; first < last; first = item.last) {
    item.first = first;
    item.last = first + together < last ? first + together : last;
    for (item.token = 0; item.token < p.tokens; item.token += kItemTokens) {
      item.x = p.x + item.token * p.k;
      item.count = p.tokens - item.token < kItemTokens ? p.tokens - item.token : kItemTokens;
      for (int g = 0; g < quant::kGroups; ++g) multiply_float_group<F>(p, item, g);
      store_floats(p, item);
    }
  }
}

}  // namespace
}  // namespace juno::cpu
