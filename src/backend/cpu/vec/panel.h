// SPDX-License-Identifier: Apache-2.0
// Integer products: weight rows side by side in a panel, which serves any number of tokens. A lane is an
// output, so that the order of docs/numerics.md §3 is one vector operation per step and no sum crosses lanes.
// A group of a panel is unpacked once and stays in the first cache. Included by the files of vec/ only.
#pragma once
#include "backend/cpu/vec/cells.h"
#include "backend/cpu/vec/pack.h"
#include "backend/cpu/vec/raw.h"
#include "quant/dot.h"

#if defined(JUNO_PANELS)

namespace juno::cpu {
namespace {

inline constexpr int kLevels = 3;                           // sums that wait for their neighbour
inline constexpr int kItemPanels = kItemRows / kPanelRows;  // unpacked at a time for many tokens
inline constexpr size_t kVectorBytes = sizeof(Bytes);

// What the arithmetic depends on: formats that agree share a kernel.
template <int kBlock, int kCell, int kUnit, int kRun, bool kScaled, bool kSigned, bool kOffset,
          Minimum kMinimum>
struct Shape {
  static constexpr int block = kBlock, cell = kCell, unit = kUnit, run = kRun;
  static constexpr int pairs = kBlock / kCell < 2 ? 1 : kBlock / kCell / 2;
  static constexpr bool scaled = kScaled, is_signed = kSigned, offset = kOffset;
  static constexpr Minimum minimum = kMinimum;
};
template <class F, int kBlock, class R = Raw<F>>
using ShapeOf = Shape < kBlock,
      R::cell, kStep<F, kBlock>,
      kPanelRun<R::is_signed, (1 << R::bits) - 1>
    <R::cell ? kPanelRun<R::is_signed, (1 << R::bits) - 1> : R::cell, R::scaled, R::is_signed, R::offset != 0,
     R::minimum>;

// Blocks of one panel, unpacked: a vector holds a number, or four bytes, of each row.
struct Panel {
  std::byte* q;  // [elements/4]
  float *d, *m;  // [blocks]
  std::byte* s;  // [elements/cell] sub-scales
  std::byte* u;  // [blocks, pairs of a block] integers that go with sums of activations
};
JUNO_BOTH Panel panel(const Product& p, std::byte* scratch, int index) {
  const int64_t n = p.chunk(), scales = n / p.cell, blocks = n / p.block;
  std::byte* at = scratch + index * p.panel_bytes(kPanelRows);
  Panel to;
  to.q = at;
  at += n / 4 * kVectorBytes;
  to.d = reinterpret_cast<float*>(at);
  to.m = to.d + blocks * kPanelRows;
  to.s = at + 2 * blocks * kVectorBytes;
  to.u = to.s + scales * kVectorBytes;
  return to;
}

// Rows of one panel in the file. Near the last row panels overlap, or repeat a row.
struct PanelRows {
  const uint8_t* w;
  int64_t stride;
  int64_t output;  // of the first lane that is kept
  int skip, rows;  // lanes: skip, skip + 1, … skip + rows - 1 are kept
};
JUNO_BOTH PanelRows panel_rows(const Product& p, int64_t output, int64_t last) {
  const auto* w = static_cast<const uint8_t*>(p.weight);
  if (p.outputs < kPanelRows) return {w + output * p.row_bytes, 0, output, 0, 1};
  const int rows = last - output < kPanelRows ? static_cast<int>(last - output) : kPanelRows;
  const int64_t past = output + kPanelRows - p.outputs, first = past > 0 ? output - past : output;
  return {w + first * p.row_bytes, p.row_bytes, output, static_cast<int>(output - first), rows};
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

// Blocks [from, to) of the file to `out`, which begins at block `origin`.
template <class F, int kBlock>
JUNO_BOTH void unpack_panel(const PanelRows& rows, int64_t origin, int64_t from, int64_t to,
                            const Panel& out) {
  constexpr int kSize = F::block_size, kPerBlock = kSize / kBlock, kCells = kSize / Raw<F>::cell;
  constexpr bool kSingles = kBlock == Raw<F>::cell;
  alignas(64) uint32_t gathered[kGather * kPanelRows], fifths[kGather * kPanelRows];
  for (int64_t first = from; first < to; first += kGather) {
    const int64_t last = first + kGather < to ? first + kGather : to;
    gather_scales<F>(rows, first, last, gathered, fifths);
    for (int64_t b = first; b < last; ++b) {
      const int64_t at = b - origin;
      const RawRows w{rows.w + b * static_cast<int64_t>(sizeof(typename F::Block)), rows.stride};
      const auto own = static_cast<int>(b - first) * kPanelRows;
      Raw<F>::get(w, load_ints(reinterpret_cast<const int32_t*>(fifths + own)),
                  {out.q + at * kSize / 4 * kVectorBytes});
      if constexpr (kSize == 256)
        Raw<F>::scales(w,
                       PanelScales<kSingles>{out.s + at * kCells * kVectorBytes,
                                             out.u + at * (kSingles ? kCells : kCells / 2) * kVectorBytes});
      const Ints scales = load_ints(reinterpret_cast<const int32_t*>(gathered + own));
      Floats d;
      if constexpr (quant::HasMin<F> || HalfScale<F>) d = low_half(scales);
      else d = wide_load(reinterpret_cast<const float*>(gathered + own));
#pragma GCC unroll 8
      for (int i = 0; i < kPerBlock; ++i) {
        wide_store(out.d + (at * kPerBlock + i) * kPanelRows, d);
        if constexpr (quant::HasMin<F>) {
          const Floats m = high_half(scales);
          wide_store(out.m + (at * kPerBlock + i) * kPanelRows, kNegativeMinimum<F> ? wide_negative(m) : m);
        }
      }
    }
  }
}

// Where the activations of a tile begin (pack.h, Record), and where its sums wait.
struct PanelTile {
  const std::byte* x;
  int64_t x_stride;  // bytes between tokens
  float* sums;       // [tokens, kLevels, kPanelRows]
};

// whole[t] = the sum of a unit: cells [first, last) of a block.
template <class S, int kTokens>
JUNO_BOTH void panel_unit(const Panel& w, const std::byte* const* x, int first, Whole* whole) {
  using R = RecordOf<S::block, S::cell>;
  constexpr int kCells = S::unit / S::cell;
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) whole[t] = no_whole();
  for (int c = first; c < first + kCells; ++c) {
    const std::byte* q = w.q + c * S::cell / 4 * kVectorBytes;
#pragma GCC unroll 8
    for (int run = 0; run < S::cell; run += S::run) {
      Ints parts[kTokens];
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t)
        parts[t] = S::offset && kWideParts ? same_four(x[t] + R::sums + 4 * c) : no_ints();
#pragma GCC unroll 32
      for (int i = run; i < run + S::run; i += 4) {
        const Bytes four = load_bytes(q + i / 4 * kVectorBytes);
#pragma GCC unroll 8
        for (int t = 0; t < kTokens; ++t)
          parts[t] = add_four<S::is_signed>(parts[t], four, x[t] + c * S::cell + i);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t)
        whole[t] = fold<S::scaled>(whole[t], parts[t], w.s + c * kVectorBytes);
    }
    if constexpr (S::offset && !kWideParts && !S::scaled)
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) whole[t] = plus(whole[t], same_four(x[t] + R::sums + 4 * c));
  }
  if constexpr (S::offset && !kWideParts && S::scaled)
    for (int c = first; c < first + kCells; c += 2)
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t)
        whole[t] = add_pair(whole[t], load_bytes(w.u + c / 2 * kVectorBytes), x[t] + R::shorts + 2 * c);
}

// acc = fma(m dx, M, acc).
template <class S, int kTokens>
JUNO_BOTH void panel_minimum(const Panel& w, const std::byte* const* x, const float* dx, Floats* acc) {
  using R = RecordOf<S::block, S::cell>;
  const Floats m = wide_load(w.m);
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    Ints sum;
    if constexpr (S::minimum == Minimum::kOne) {
      sum = same_four(x[t] + R::sums);
    } else {
      sum = no_ints();
#pragma GCC unroll 4
      for (int c = 0; c < S::block / S::cell; c += 2)
        sum = add_pair(sum, load_bytes(w.u + c / 2 * kVectorBytes), x[t] + R::shorts + 2 * c);
    }
    acc[t] = wide_fma(wide_mul(m, all_floats(dx[t])), to_floats(sum), acc[t]);
  }
}

// Group g: `blocks` blocks of a panel times kTokens rows of activations, added into the tree. sums holds
// those that wait for a neighbour; after the last group the result is in its first level.
template <class S, int kTokens>
[[gnu::noinline]] void panel_group(Panel w, int64_t blocks, const PanelTile& tile, int g) {
  using R = RecordOf<S::block, S::cell>;
  constexpr int kCells = S::block / S::cell, kUnits = S::block / S::unit;
  Floats acc[kTokens];
  const std::byte* x[kTokens];
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    acc[t] = no_floats();
    x[t] = tile.x + t * tile.x_stride;
  }
  for (int64_t b = 0; b < blocks; ++b) {
    const Floats d = wide_load(w.d);
    float dx[kTokens];
    Floats s[kTokens];
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      std::memcpy(dx + t, x[t] + R::scale, sizeof(float));
      if constexpr (kUnits > 1) s[t] = wide_mul(d, all_floats(dx[t]));
    }
    for (int unit = 0; unit < kUnits; ++unit) {
      Whole whole[kTokens];
      panel_unit<S, kTokens>(w, x, unit * (kCells / kUnits), whole);
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t)
        acc[t] = wide_fma(kUnits > 1 ? s[t] : wide_mul(d, all_floats(dx[t])), value_of(whole[t]), acc[t]);
    }
    if constexpr (S::minimum != Minimum::kNone) panel_minimum<S, kTokens>(w, x, dx, acc);
    w.q += S::block / 4 * kVectorBytes;
    w.s += kCells * kVectorBytes;
    w.u += S::pairs * kVectorBytes;
    w.d += kPanelRows;
    w.m += kPanelRows;
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) x[t] += R::bytes;
  }
  int level = 0;
  for (; g >> level & 1; ++level)
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t)
      acc[t] = wide_add(wide_load(tile.sums + (t * kLevels + level) * kPanelRows), acc[t]);
  if (level == kLevels) level = 0;
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) wide_store(tile.sums + (t * kLevels + level) * kPanelRows, acc[t]);
}

// kTokens at a time as long as there are so many.
template <class S, int kTokens>
JUNO_BOTH void panel_tiles(const Panel& w, int64_t blocks, PanelTile& tile, int g, int& tokens) {
  for (; tokens >= kTokens; tokens -= kTokens) {
    panel_group<S, kTokens>(w, blocks, tile, g);
    tile.x += kTokens * tile.x_stride;
    tile.sums += kTokens * kLevels * kPanelRows;
  }
}

// A few panels, and the activation rows that meet them at a time.
struct PanelItem {
  PanelRows rows[kItemPanels];
  int panels;
  int first, count;  // activation rows: tokens times planes
  std::byte* scratch;
  float* sums;  // [panels, count, kLevels, kPanelRows]
};

template <class S>
JUNO_BOTH void multiply_group(const Product& p, const PanelItem& item, int64_t origin, int g) {
  const int64_t begin = quant::group_begin(g, p.blocks()),
                blocks = quant::group_begin(g + 1, p.blocks()) - begin;
  const int64_t skip = begin - origin;  // blocks of the panel before this group
  constexpr int kCells = S::block / S::cell;
  for (int t = 0; t < item.count;) {
    const int tokens = item.count - t < kPanelTokens ? item.count - t : kPanelTokens;
    for (int i = 0; i < item.panels; ++i) {
      Panel w = panel(p, item.scratch, i);
      w.q += skip * (S::block / 4 * kVectorBytes);
      w.s += skip * kCells * kVectorBytes;
      w.u += skip * S::pairs * kVectorBytes;
      w.d += skip * kPanelRows;
      w.m += skip * kPanelRows;
      PanelTile tile{record_row(p, item.first + t) + begin * RecordOf<S::block, S::cell>::bytes,
                     static_cast<int64_t>(p.packed_bytes()),
                     item.sums + (static_cast<int64_t>(i) * item.count + t) * kLevels * kPanelRows};
      int left = tokens;
      if constexpr (kPanelTokens == 8) panel_tiles<S, 8>(w, blocks, tile, g, left);
      panel_tiles<S, 4>(w, blocks, tile, g, left);
      panel_tiles<S, 2>(w, blocks, tile, g, left);
      panel_tiles<S, 1>(w, blocks, tile, g, left);
    }
    t += tokens;
  }
}

// Asks for the panel after this one, an eighth of it for each group.
JUNO_BOTH void ask_ahead(const Product& p, const PanelRows& rows, int g) {
  const int64_t bytes = kPanelRows * p.row_bytes;
  const uint8_t* next = rows.w + bytes;
  for (int64_t at = bytes * g / 8 / 64 * 64; at < bytes * (g + 1) / 8; at += 64)
    __builtin_prefetch(next + at, 0, 2);
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
                              panel(p, item.scratch, i));
      if (item.panels == 1) ask_ahead(p, item.rows[i], g);
    }
    if (until > done) done = until;
    multiply_group<ShapeOf<F, kBlock>>(p, item, origin, g);
  }
}

// y of both planes, and the bias, added.
JUNO_BOTH void store_item(const Product& p, const PanelItem& item) {
  for (int i = 0; i < item.panels; ++i) {
    const PanelRows& rows = item.rows[i];
    for (int t = 0; t < item.count; t += p.planes) {
      float* sums = item.sums + (static_cast<int64_t>(i) * item.count + t) * kLevels * kPanelRows;
      Floats y = wide_load(sums);
      if (p.planes == 2) y = wide_add(y, wide_load(sums + kLevels * kPanelRows));
      wide_store(sums, y);
      float* to = p.y + (item.first + t) / p.planes * p.outputs + rows.output;
      if (p.bias)
        for (int r = 0; r < rows.rows; ++r) to[r] = sums[rows.skip + r] + p.bias[rows.output + r];
      else store_panel(to, sums, rows.skip, rows.rows);
    }
  }
}

template <class F, int kBlock>
JUNO_BOTH void multiply_panels(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  PanelItem item;
  item.scratch = scratch;
  item.sums = reinterpret_cast<float*>(scratch + kItemPanels * p.panel_bytes(kPanelRows));
  const int count = p.tokens * p.planes, most = count > kPanelTokens ? kItemPanels : 1;
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
}

}  // namespace
}  // namespace juno::cpu

#endif
