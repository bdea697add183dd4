// SPDX-License-Identifier: Apache-2.0
// Products of many tokens with float weights: docs/numerics.md §4. Included by vec/linear.h only.
#pragma once
#include "backend/cpu/vec/floats.h"

namespace juno::cpu {
namespace {

// Of a tile: panels (of sixteen rows, as lanes) and tokens. As many sums as the registers hold beside
// factors.
inline constexpr int kSidePanels = kTileRows < 8 ? 1 : 4, kSideTokens = 6;

// The sixteen sums of a group in the order in which the halving tree adds neighbours; its own inverse.
inline constexpr int kTreeOrder[kLanes] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
inline constexpr int kSumLevels = 4, kGroupLevels = 3;  // of the trees of sums and of groups

JUNO_BOTH int64_t panel_steps(int64_t n) { return (n + kLanes - 1) / kLanes; }

// Four columns of four rows of sixteen.
using Four [[gnu::vector_size(16)]] = float;
JUNO_BOTH void turn4x4(const float* rows, Four* columns) {
  Four a, b, c, d;
  std::memcpy(&a, rows, sizeof a);
  std::memcpy(&b, rows + kLanes, sizeof b);
  std::memcpy(&c, rows + 2 * kLanes, sizeof c);
  std::memcpy(&d, rows + 3 * kLanes, sizeof d);
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  columns[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  columns[1] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  columns[2] = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
  columns[3] = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);
}

// n elements of sixteen rows, to [sums in kTreeOrder, panel_steps(n), kLanes rows].
template <class F>
[[gnu::noinline]] void turn_rows(const typename F::Block* const* rows, int64_t n, float* to) {
  const int64_t steps = panel_steps(n);
  for (int64_t s = 0; s < steps; ++s) {
    alignas(64) float wide[kLanes][kLanes];
    for (int r = 0; r < kLanes; ++r) {
      const auto* row = rows[r] + s * kLanes;
      __builtin_prefetch(row + n);  // of the next group
      if (s * kLanes + kLanes <= n) store(wide[r], load_weights(row));
      else
        for (int i = 0; i < kLanes; ++i) wide[r][i] = s * kLanes + i < n ? F::value(row[i], 0) : 0;
    }
#pragma GCC unroll 4
    for (int i = 0; i < kLanes; i += 4) {
#pragma GCC unroll 4
      for (int r = 0; r < kLanes; r += 4) {
        Four columns[4];
        turn4x4(&wide[r][i], columns);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j)
          std::memcpy(to + (kTreeOrder[i + j] * steps + s) * kLanes + r, &columns[j], sizeof columns[j]);
      }
    }
  }
}

// Leaf i of kSums neighbour trees in each lane: added to the sums that wait for it, and waiting itself.
template <int kSums>
JUNO_BOTH void climb(Lanes* sums, int i, float* waiting) {
  for (; i & 1; i >>= 1, waiting += kSums * kLanes) {
#pragma GCC unroll 32
    for (int s = 0; s < kSums; ++s) sums[s] = add(load(waiting + s * kLanes), sums[s]);
  }
#pragma GCC unroll 32
  for (int s = 0; s < kSums; ++s) store(waiting + s * kLanes, sums[s]);
}

// A group of the elements of some panels and tokens.
struct SideTile {
  const float* w;  // of the first panel
  int64_t w_stride, n;
  const float* x[kSideTokens];
  int64_t ahead;   // from a token to the same of the next tile, which is asked for meanwhile
  float* waiting;  // [kGroupLevels + 1, tokens, panels, kLanes]: at last the results
};

template <int kPanels>
[[gnu::noinline]] void side_group(const SideTile& tile, int g) {
  constexpr int kSums = kPanels * kSideTokens;
  const int64_t steps = panel_steps(tile.n);
  alignas(64) float waiting[(kSumLevels + 1) * kSums * kLanes];
  Lanes sums[kSums];
  for (int i = 0; i < kLanes; ++i) {
#pragma GCC unroll 32
    for (Lanes& sum : sums) sum = all(0);
    const float *w = tile.w + i * steps * kLanes, *next = tile.x[i % kSideTokens] + tile.ahead;
    for (int64_t k = kTreeOrder[i]; k < tile.n; k += kLanes, w += kLanes) {
      __builtin_prefetch(next + k);
      Lanes own[kPanels];
#pragma GCC unroll 4
      for (int j = 0; j < kPanels; ++j) own[j] = load(w + j * tile.w_stride);
#pragma GCC unroll 8
      for (int t = 0; t < kSideTokens; ++t) {
        const Lanes x = all(tile.x[t][k]);
#pragma GCC unroll 4
        for (int j = 0; j < kPanels; ++j) sums[t * kPanels + j] = fma(own[j], x, sums[t * kPanels + j]);
      }
    }
    climb<kSums>(sums, i, waiting);
  }
  climb<kSums>(sums, g, tile.waiting);
}

// Outputs [first, first + rows) of tokens [token, token + count).
struct SideItem {
  const Product& p;
  int64_t first, rows;
  int token, count;
  float* w;        // [panels, a group]
  float* waiting;  // [panels, tiles of tokens, kWaiting]

  static constexpr int64_t kWaiting = (kGroupLevels + 1) * kSideTokens * kLanes;
  JUNO_BOTH int panels() const { return static_cast<int>((rows + kLanes - 1) / kLanes); }
  JUNO_BOTH int64_t w_stride() const { return kLanes * p.chunk(); }
  // Of panels [panel, panel + together).
  JUNO_BOTH float* waiting_at(int panel, int together, int t) const {
    const int tiles = (count + kSideTokens - 1) / kSideTokens;
    return waiting + (panel * tiles + t / kSideTokens * together) * kWaiting;
  }
};

// Past the last row, the last again.
template <class F>
JUNO_BOTH void turn_group(const SideItem& item, const Span& group) {
  for (int i = 0; i < item.panels(); ++i) {
    const typename F::Block* rows[kLanes];
    for (int r = 0; r < kLanes; ++r) {
      const int64_t row = i * kLanes + r < item.rows ? i * kLanes + r : item.rows - 1;
      const char* w = static_cast<const char*>(item.p.weight) + (item.first + row) * item.p.row_bytes;
      rows[r] = reinterpret_cast<const typename F::Block*>(w) + group.begin;
    }
    turn_rows<F>(rows, group.size, item.w + i * item.w_stride());
  }
}

template <int kPanels>
JUNO_BOTH void store_side(const SideItem& item, int panel) {
  const int64_t own = panel * kLanes, past = own + kPanels * kLanes;
  const int64_t outputs = (past < item.rows ? past : item.rows) - own;
  for (int t = 0; t < item.count; ++t) {
    const float* sums = item.waiting_at(panel, kPanels, t) +
                        (kGroupLevels * kSideTokens + t % kSideTokens) * kPanels * kLanes;
    float* y = item.p.y + (item.token + t) * item.p.outputs + item.first + own;
    if (!item.p.bias) std::memcpy(y, sums, outputs * sizeof(float));
    else
      for (int64_t o = 0; o < outputs; ++o) y[o] = sums[o] + item.p.bias[item.first + own + o];
  }
}

// From `panel` on, kPanels at a time; returns the first that is left.
template <int kPanels>
JUNO_BOTH int multiply_side(const SideItem& item, int panel, const Span& group, int g) {
  if constexpr (kPanels > kSidePanels) return panel;
  for (; panel + kPanels <= item.panels(); panel += kPanels) {
    SideTile tile{.w = item.w + panel * item.w_stride(), .w_stride = item.w_stride(), .n = group.size};
    for (int t = 0; t < item.count; t += kSideTokens) {
      tile.waiting = item.waiting_at(panel, kPanels, t);
      tile.ahead = t + kSideTokens < item.count ? kSideTokens * item.p.k : 0;
      for (int i = 0; i < kSideTokens; ++i) {  // past the last token, the last again
        const int at = t + i < item.count ? t + i : item.count - 1;
        tile.x[i] = item.p.x + (item.token + at) * item.p.k + group.begin;
      }
      side_group<kPanels>(tile, g);
    }
    if (g == quant::kGroups - 1) store_side<kPanels>(item, panel);
  }
  return panel;
}

// A group at a time, whose panels stay near while tokens come and go.
template <class F>
JUNO_BOTH void multiply_item(const SideItem& item) {
  for (int g = 0; g < quant::kGroups; ++g) {
    const Span group = float_span(item.p, g);
    turn_group<F>(item, group);
    int panel = multiply_side<4>(item, 0, group, g);
    panel = multiply_side<2>(item, panel, group, g);
    multiply_side<1>(item, panel, group, g);
  }
}

template <class F>
JUNO_BOTH void multiply_many_floats(const Product& p, int64_t first, int64_t last, float* scratch) {
  for (; first < last; first += kItemRows) {
    const int64_t rows = last - first < kItemRows ? last - first : kItemRows;
    for (int token = 0; token < p.tokens; token += kItemTokens) {
      const int count = p.tokens - token < kItemTokens ? p.tokens - token : kItemTokens;
      multiply_item<F>({p, first, rows, token, count, scratch, scratch + kItemRows * p.chunk()});
    }
  }
}

// Up to so many tokens turning weights costs more than it saves.
inline constexpr int kFewTokens = 16;

template <quant::FloatFormat F>
void multiply(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  if (p.tokens > kFewTokens) multiply_many_floats<F>(p, first, last, reinterpret_cast<float*>(scratch));
  else multiply_few_floats<F>(p, first, last, reinterpret_cast<float*>(scratch));
}

}  // namespace
}  // namespace juno::cpu
