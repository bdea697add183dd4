// SPDX-License-Identifier: Apache-2.0
// A group of a panel of weight rows times a few rows of activations: the arithmetic of panel.h. Included by
// the files of vec/ only.
#pragma once
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
          Minimum kMinimum, int kPlanes>
struct Shape {
  static constexpr int block = kBlock, cell = kCell, unit = kUnit, run = kRun;
  static constexpr int pairs = kBlock / kCell < 2 ? 1 : kBlock / kCell / 2;
  static constexpr bool scaled = kScaled, is_signed = kSigned, offset = kOffset;
  static constexpr Minimum minimum = kMinimum;
  static constexpr int planes = kPlanes;  // of signed bytes that v takes (squares.h)
};
template <class R>
constexpr int run_of() {
  constexpr int kLargest = (1 << R::bits) - 1, kRun = kPanelRun<R::is_signed, kLargest>;
  return kRun < R::cell ? kRun : R::cell;
}
template <class F>
constexpr int planes_of() {
  return Raw<F>::scaled && F::max_v > 127 ? 2 : 1;
}
template <class F, int kBlock, class R = Raw<F>>
using ShapeOf = Shape<kBlock, R::cell, kStep<F, kBlock>, run_of<R>(), R::scaled, R::is_signed, R::offset != 0,
                      R::minimum, planes_of<F>()>;

// Blocks of one panel, unpacked: a vector holds a number, or four bytes, of each row.
struct Panel {
  std::byte* q;  // [elements/4]
  float *d, *m;  // [blocks]
  std::byte* s;  // [elements/cell] sub-scales
  std::byte* u;  // [blocks, pairs of a block] integers that go with sums of activations
};
template <int kBlock, int kCell>
JUNO_BOTH Panel panel(const Product& p, std::byte* scratch, int index) {
  const int64_t n = p.chunk(), scales = n / kCell, blocks = n / kBlock;
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
#pragma GCC unroll 16
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

// Sums of group g into the tree: `sums` holds those that wait for a neighbour, and after the last group the
// result in its first level.
template <int kTokens>
JUNO_BOTH void add_to_tree(Floats* acc, float* sums, int g) {
  int level = 0;
  for (; g >> level & 1; ++level)
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t)
      acc[t] = wide_add(wide_load(sums + (t * kLevels + level) * kPanelRows), acc[t]);
  if (level == kLevels) level = 0;
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) wide_store(sums + (t * kLevels + level) * kPanelRows, acc[t]);
}

// Group g: `blocks` blocks of a panel times kTokens rows of activations, added into the tree.
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
      dx[t] = float_at(x[t] + R::scale);
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
  add_to_tree<kTokens>(acc, tile.sums, g);
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

}  // namespace
}  // namespace juno::cpu

#endif
