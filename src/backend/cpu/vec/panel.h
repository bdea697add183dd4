// SPDX-License-Identifier: Apache-2.0
// Integer products: weight rows side by side in a panel, which serves any number of tokens. A lane is an
// output, so that the order of docs/numerics.md §3 is one vector operation per step and no sum crosses lanes.
// A group of a panel is unpacked once and stays in the first cache. Included by the files of vec/ only.
#pragma once
#include "backend/cpu/vec/panel_group.h"
#include "backend/cpu/vec/panel_one.h"
#include "backend/cpu/vec/squares.h"

#if defined(JUNO_PANELS)

namespace juno::cpu {
namespace {

// Block b of the file to block `at` of `out`.
template <class F, int kBlock>
JUNO_BOTH void unpack_block(const RawRows& w, const Singles& singles, int64_t at, const Panel& out) {
  constexpr int kSize = F::block_size, kPerBlock = kSize / kBlock, kCells = kSize / Raw<F>::cell;
  constexpr bool kSingles = kBlock == Raw<F>::cell;
  constexpr int kWidth = ShapeOf<F, kBlock>::width;
  Raw<F>::get(w, singles.fifths, PanelQuads<kWidth>{out.q + at * kSize / 4 * kVectorBytes * kWidth});
  if constexpr (kSize == 256)
    Raw<F>::scales(w, PanelScales<kSingles>{out.s + at * kCells * kVectorBytes,
                                            out.u + at * (kSingles ? kCells : kCells / 2) * kVectorBytes});
  const Floats d = scale_d<F>(singles);
#pragma GCC unroll 8
  for (int i = 0; i < kPerBlock; ++i) {
    wide_store(out.d + (at * kPerBlock + i) * kPanelRows, d);
    if constexpr (quant::HasMin<F>)
      wide_store(out.m + (at * kPerBlock + i) * kPanelRows, scale_m<F>(singles));
  }
}

// Blocks [from, to) of the file to `out`, which begins at block `origin`.
template <class F, int kBlock>
JUNO_BOTH void unpack_panel(const PanelRows& rows, int64_t origin, int64_t from, int64_t to,
                            const Panel& out) {
  visit_blocks<F>(rows, from, to,
                  [&](const RawRows& w, const Singles& singles, int64_t b)
                      [[gnu::always_inline]] { unpack_block<F, kBlock>(w, singles, b - origin, out); });
}

// A few panels, and the activation rows that meet them at a time.
struct PanelItem {
  PanelRows rows[kItemPanels];
  Panel unpacked[kItemPanels];
  int panels;
  int first, count;   // activation rows: tokens times planes
  int64_t x_stride;   // bytes between them
  float* sums;        // [panels, count, kLevels, kPanelRows]
  std::byte* folded;  // room for squares.h: a group of a panel in two planes
};

// Panel `index` of an item from block `skip` on.
template <class S>
JUNO_BOTH Panel panel_from(const PanelItem& item, int index, int64_t skip) {
  Panel w = item.unpacked[index];
  w.q += skip * (S::block / 4 * kVectorBytes * S::width);
  w.s += skip * (S::block / S::cell * kVectorBytes);
  w.u += skip * (S::pairs * kVectorBytes);
  w.d += skip * kPanelRows;
  w.m += skip * kPanelRows;
  return w;
}

// Activation rows from t on, from block `begin` on, and their sums with panel `index`.
template <class S>
JUNO_BOTH PanelTile tile_of(const Product& p, const PanelItem& item, int index, int t, int64_t begin) {
  const int64_t panel_sums = int64_t{item.count} * kLevels * kPanelRows;
  return {p.packed + (item.first + t) * item.x_stride + begin * RecordOf<S>::bytes,
          item.x_stride,
          item.sums + index * panel_sums + t * kLevels * kPanelRows,
          panel_sums,
          nullptr,
          0,
          0};
}

// While few tokens are multiplied with group g, the next one is on its way: a part of it with `tokens` of
// them from t on. The group behind the last is the first of the next panel.
JUNO_BOTH void ask_ahead(const Product& p, const PanelRows& rows, int g, int t, int tokens, PanelTile& tile) {
  const int64_t count = p.tokens * p.planes, blocks = p.steps();
  tile.panel_bytes = p.row_bytes * kPanelRows;
  const int64_t group = tile.panel_bytes / quant::kGroups;
  tile.ahead = rows.w + (g + 1) * group + group * t / count;
  tile.lines = (group * tokens / count / 64 + blocks) / blocks;
}

// Group g of all panels; they are unpacked from block `origin` on.
template <class S>
JUNO_BOTH void multiply_group(const Product& p, const PanelItem& item, int64_t origin, int g) {
  const int64_t begin = quant::group_begin(g, p.blocks());
  const int64_t blocks = quant::group_begin(g + 1, p.blocks()) - begin;
  int t = 0;
#if defined(JUNO_SQUARES)
  for (int i = 0; i < item.panels; ++i)
    t = multiply_squares<S>(p, panel_from<S>(item, i, begin - origin), blocks,
                            tile_of<S>(p, item, i, 0, begin), {item.count, item.folded}, g);
#endif
  Panel w[kItemPanels];
  for (int i = 0; i < item.panels; ++i) w[i] = panel_from<S>(item, i, begin - origin);
  while (t < item.count) {
    const bool pairs = kPairTokens > 0 && item.panels > 1 && item.count - t >= kPairTokens;
    const int most = pairs ? kPairTokens : kPanelTokens;
    const int tokens = item.count - t < most ? item.count - t : most;
    for (int i = 0; i < item.panels; ++i) {
      PanelTile tile = tile_of<S>(p, item, i, t, begin);
      if (item.rows[i].turned && item.rows[i].ahead == 0) ask_ahead(p, item.rows[i], g, t, tokens, tile);
      int left = tokens;
      if constexpr (kPairTokens > 0) {
        if (pairs && i + 1 < item.panels) panel_tiles<S, kPairTokens, 2>(w + i++, blocks, tile, g, left);
      }
      if constexpr (kPanelTokens == 8) panel_tiles<S, 8, 1>(w + i, blocks, tile, g, left);
      panel_tiles<S, 4, 1>(w + i, blocks, tile, g, left);
      panel_tiles<S, 2, 1>(w + i, blocks, tile, g, left);
      panel_tiles<S, 1, 1>(w + i, blocks, tile, g, left);
    }
    t += tokens;
  }
}

template <class F, int kBlock>
JUNO_BOTH void multiply_item(const Product& p, const PanelItem& item) {
  int64_t origin = 0, done = 0;  // activation blocks: where the unpacked ones begin and end
  constexpr int64_t kPerBlock = F::block_size / kBlock;
  for (int g = 0; g < quant::kGroups; ++g) {
    const int64_t begin = quant::group_begin(g, p.blocks()), end = quant::group_begin(g + 1, p.blocks());
    const int64_t until = (end + kPerBlock - 1) / kPerBlock * kPerBlock;
    if (begin >= done || (until - origin) * kBlock > p.chunk()) origin = done = begin / kPerBlock * kPerBlock;
    for (int i = 0; i < item.panels; ++i) {
      unpack_panel<F, kBlock>(item.rows[i], origin / kPerBlock, done / kPerBlock, until / kPerBlock,
                              item.unpacked[i]);
    }
    if (until > done) done = until;
    multiply_group<ShapeOf<F, kBlock>>(p, item, origin, g);
  }
}

// y of both planes, and the bias, added. A token's panels one after the other, for tokens' rows lie in pages
// of their own.
JUNO_BOTH void store_item(const Product& p, const PanelItem& item) {
  for (int t = 0; t < item.count; t += p.planes) {
    float* const y = p.y + (item.first + t) / p.planes * p.outputs;
    for (int i = 0; i < item.panels; ++i) {
      const PanelRows& rows = item.rows[i];
      float* sums = item.sums + (static_cast<int64_t>(i) * item.count + t) * kLevels * kPanelRows;
      if (p.planes == 2) wide_store(sums, wide_add(wide_load(sums), wide_load(sums + kLevels * kPanelRows)));
      float* const to = y + rows.output;
      if (p.bias)
        for (int r = 0; r < rows.rows; ++r) to[r] = sums[rows.skip + r] + p.bias[rows.output + r];
      else store_panel(to, sums, rows.skip, rows.rows);
    }
  }
}

template <class F, int kBlock>
JUNO_BOTH void multiply_panels(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  PanelItem item;
  for (int i = 0; i < kItemPanels; ++i) item.unpacked[i] = panel<ShapeOf<F, kBlock>>(p, scratch, i);
  item.sums = reinterpret_cast<float*>(scratch + kItemPanels * p.panel_bytes(kPanelRows));
  item.x_stride = static_cast<int64_t>(p.packed_bytes());
  const int count = p.tokens * p.planes;
  const int most = count > kBatchTokens ? kItemPanels : count > kPanelTokens ? 2 : 1;
  const int together = count < kItemTokens ? count : kItemTokens;
  item.folded = reinterpret_cast<std::byte*>(item.sums + int64_t{kItemRows} * together * kLevels);
#if defined(JUNO_SQUARES)
  if (count >= kSquare) open_squares<(kStep<F, kBlock> < 64 ? kStep<F, kBlock> : 64)>();
#endif
  for (int64_t o = first; o < last;) {
    for (item.panels = 0; item.panels < most && o < last; ++item.panels) {
      item.rows[item.panels] = panel_rows(p, o, last);
      o += item.rows[item.panels].rows;
    }
    for (item.first = 0; item.first < count; item.first += kItemTokens) {
      item.count = count - item.first < kItemTokens ? count - item.first : kItemTokens;
      if (count == 1)
        for (int i = 0; i < item.panels; ++i)
          multiply_one<F, kBlock>(p, item.rows[i], tile_of<ShapeOf<F, kBlock, 1>>(p, item, i, 0, 0));
      else multiply_item<F, kBlock>(p, item);
      store_item(p, item);
    }
  }
#if defined(JUNO_SQUARES)
  if (count >= kSquare) close_squares();
#endif
}

}  // namespace
}  // namespace juno::cpu

#endif
