// SPDX-License-Identifier: Apache-2.0
// Integer products: weight rows side by side in a panel, which serves any number of tokens. A lane is an
// output, so that the order of docs/numerics.md §3 is one vector operation per step and no sum crosses lanes.
// A group of a panel is unpacked once and stays in the first cache. Included by the files of vec/ only.
#pragma once
#include "backend/cpu/vec/panel_group.h"
#include "backend/cpu/vec/squares.h"
#include "backend/cpu/vec/turned.h"

#if defined(JUNO_PANELS)

namespace juno::cpu {
namespace {

// Rows of one panel in the file, or turned. In the file panels overlap near the last row, or repeat a row.
struct PanelRows {
  const uint8_t* w;
  int64_t stride;
  bool turned;
  int64_t output;  // of the first lane that is kept
  int skip, rows;  // lanes: skip, skip + 1, … skip + rows - 1 are kept
};
JUNO_BOTH PanelRows panel_rows(const Product& p, int64_t output, int64_t last) {
  const auto* w = static_cast<const uint8_t*>(p.weight);
  if (p.outputs < kPanelRows) return {w + output * p.row_bytes, 0, false, output, 0, 1};
  const int rows = last - output < kPanelRows ? static_cast<int>(last - output) : kPanelRows;
  const int64_t past = output + kPanelRows - p.outputs, first = past > 0 ? output - past : output;
  return {w + first * p.row_bytes, p.row_bytes, p.turned, output, static_cast<int>(output - first), rows};
}

// Of blocks [from, to) of all rows: what lies singly is gathered row by row.
template <class F>
JUNO_BOTH void gather_scales(const PanelRows& rows, int64_t from, int64_t to, uint32_t* gathered,
                             uint32_t* fifths) {
  using Block = typename F::Block;
  for (int r = 0; r < kPanelRows; ++r) {
    const auto* blocks = reinterpret_cast<const Block*>(rows.w + r * rows.stride);
    for (int64_t b = from; b < to; ++b) {
      uint32_t& own = gathered[(b - from) * kPanelRows + r];
      if constexpr (quant::HasMin<F>)
        std::memcpy(&own, reinterpret_cast<const uint8_t*>(blocks + b) + kScales<F>, 4);
      else if constexpr (HalfScale<F>) own = blocks[b].d;
      else own = bits_of(F::d(blocks[b]));
      if constexpr (requires { Raw<F>::fifths; })
        std::memcpy(fifths + (b - from) * kPanelRows + r,
                    reinterpret_cast<const uint8_t*>(blocks + b) + Raw<F>::fifths, 4);
    }
  }
}

inline constexpr int kGather = 8;  // blocks whose scales are gathered at a time

// What lies singly in a block: the scales, and the dwords of fifth bits.
struct Singles {
  Ints scales, fifths;
};
template <class F>
JUNO_BOTH Singles turned_singles(const uint8_t* block) {
  Singles of{};
  if constexpr (Turnable<F>) {
    if constexpr (requires { Raw<F>::fifths; }) of.fifths = turned_dwords(block, Raw<F>::fifths);
    if constexpr (quant::HasMin<F>) of.scales = turned_dwords(block, kScales<F>);
    else if constexpr (half_at<F>() == -1) of.scales = turned_dwords(block, offsetof(typename F::Block, d));
    else of.scales = turned_halves<F>(block);
  }
  return of;
}

// Block b of the file to block `at` of `out`.
template <class F, int kBlock>
JUNO_BOTH void unpack_block(const RawRows& w, const Singles& singles, int64_t at, const Panel& out) {
  constexpr int kSize = F::block_size, kPerBlock = kSize / kBlock, kCells = kSize / Raw<F>::cell;
  constexpr bool kSingles = kBlock == Raw<F>::cell;
  Raw<F>::get(w, singles.fifths, {out.q + at * kSize / 4 * kVectorBytes});
  if constexpr (kSize == 256)
    Raw<F>::scales(w, PanelScales<kSingles>{out.s + at * kCells * kVectorBytes,
                                            out.u + at * (kSingles ? kCells : kCells / 2) * kVectorBytes});
  Floats d;
  if constexpr (quant::HasMin<F> || HalfScale<F>) d = low_half(singles.scales);
  else d = as_floats(singles.scales);
#pragma GCC unroll 8
  for (int i = 0; i < kPerBlock; ++i) {
    wide_store(out.d + (at * kPerBlock + i) * kPanelRows, d);
    if constexpr (quant::HasMin<F>) {
      const Floats m = high_half(singles.scales);
      wide_store(out.m + (at * kPerBlock + i) * kPanelRows, kNegativeMinimum<F> ? wide_negative(m) : m);
    }
  }
}

// Blocks [from, to) of the file to `out`, which begins at block `origin`.
template <class F, int kBlock>
JUNO_BOTH void unpack_panel(const PanelRows& rows, int64_t origin, int64_t from, int64_t to,
                            const Panel& out) {
  constexpr int64_t kBytes = sizeof(typename F::Block);
  if (rows.turned) {
    for (int64_t b = from; b < to; ++b) {
      const uint8_t* const block = rows.w + b * kBytes * kPanelRows;
      unpack_block<F, kBlock>({block, 0, nullptr, true}, turned_singles<F>(block), b - origin, out);
    }
    return;
  }
  alignas(64) uint32_t gathered[kGather * kPanelRows], fifths[kGather * kPanelRows];
  const auto single = [](const uint32_t* all, int64_t index) {
    return load_ints(reinterpret_cast<const int32_t*>(all + index * kPanelRows));
  };
  for (int64_t first = from; first < to; first += kGather) {
    const int64_t last = first + kGather < to ? first + kGather : to;
    gather_scales<F>(rows, first, last, gathered, fifths);
    for (int64_t b = first; b < last; ++b) {
      const RawRows w{rows.w + b * kBytes, rows.stride, rows.w + kPanelRows * (rows.stride + b * kBytes),
                      false};
      unpack_block<F, kBlock>(w, {single(gathered, b - first), single(fifths, b - first)}, b - origin, out);
    }
  }
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
  w.q += skip * (S::block / 4 * kVectorBytes);
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
  return {p.packed + (item.first + t) * item.x_stride + begin * RecordOf<S::block, S::cell>::bytes,
          item.x_stride, item.sums + index * panel_sums + t * kLevels * kPanelRows, panel_sums};
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
  for (int i = 0; i < kItemPanels; ++i) item.unpacked[i] = panel<kBlock, Raw<F>::cell>(p, scratch, i);
  item.sums = reinterpret_cast<float*>(scratch + kItemPanels * p.panel_bytes(kPanelRows));
  item.x_stride = static_cast<int64_t>(p.packed_bytes());
  const int count = p.tokens * p.planes, most = count > kPanelTokens ? kItemPanels : 1;
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
      multiply_item<F, kBlock>(p, item);
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
