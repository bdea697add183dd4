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
inline constexpr int kBatchTokens = 32;                     // of which fewer panels stay in the first cache
inline constexpr size_t kVectorBytes = sizeof(Bytes);

// What the arithmetic depends on: formats that agree share a kernel.
template <int kBlock, int kCell, int kUnit, int kRun, bool kScaled, bool kSigned, bool kOffset,
          Minimum kMinimum, int kPlanes, int kWidth>
struct Shape {
  static constexpr int block = kBlock, cell = kCell, unit = kUnit, run = kRun;
  static constexpr int pairs = kBlock / kCell < 2 ? 1 : kBlock / kCell / 2;
  static constexpr bool scaled = kScaled, is_signed = kSigned, offset = kOffset;
  static constexpr Minimum minimum = kMinimum;
  static constexpr int width = kWidth;
  static constexpr int planes = kPlanes;  // of signed bytes that v takes (squares.h)
};
template <class R, int kWidth>
constexpr int run_of() {
  constexpr int kLargest = (1 << R::bits) - 1,
                kRun = kWidth > 1 ? R::cell : kPanelRun<R::is_signed, kLargest>;
  return kRun < R::cell ? kRun : R::cell;
}
template <class F>
constexpr int planes_of() {
  return Raw<F>::scaled && F::max_v > 127 ? 2 : 1;
}
template <class F, int kBlock, int kWidth = kWidest<Raw<F>::is_signed>, class R = Raw<F>>
using ShapeOf = Shape<kBlock, R::cell, kStep<F, kBlock>, run_of<R, kWidth>(), R::scaled, R::is_signed,
                      R::offset != 0, R::minimum, planes_of<F>(), kWidth>;

// Blocks of one panel, unpacked: a vector holds a number, or four bytes, of each row.
struct Panel {
  std::byte* q;  // [elements/4, width]
  float *d, *m;  // [blocks]
  std::byte* s;  // [elements/cell] sub-scales
  std::byte* u;  // [blocks, pairs of a block] integers that go with sums of activations
};
template <class S>
JUNO_BOTH Panel panel(const Product& p, std::byte* scratch, int index) {
  const int64_t n = p.chunk(), scales = n / S::cell, blocks = n / S::block;
  std::byte* at = scratch + index * p.panel_bytes(kPanelRows);
  Panel to;
  to.q = at;
  at += n / 4 * kVectorBytes * S::width;
  to.d = reinterpret_cast<float*>(at);
  to.m = to.d + blocks * kPanelRows;
  to.s = at + 2 * blocks * kVectorBytes;
  to.u = to.s + scales * kVectorBytes;
  return to;
}

// Where the activations of a tile begin (pack.h, Record), and where its sums wait.
struct PanelTile {
  const std::byte* x;
  int64_t x_stride;    // bytes between tokens
  float* sums;         // [tokens, kLevels, kPanelRows]
  int64_t panel_sums;  // floats between those of two panels
  // What is unpacked next, asked for meanwhile: so many cache lines of each panel with each block.
  const uint8_t* ahead;
  int64_t panel_bytes;  // from a panel to the next one
  int64_t lines;
};

// whole[i * kTokens + t] = the sum of a unit of panel i and token t: cells [first, last) of a block.
template <class S, int kTokens, int kPanels>
JUNO_BOTH void panel_unit(const Panel* w, const std::byte* const* x, int first, Whole* whole) {
  using R = RecordOf<S>;
  constexpr int kCells = S::unit / S::cell, kSums = kTokens * kPanels;
  constexpr bool kOnce = kCells == 1 && S::run == S::cell;
#pragma GCC unroll 16
  for (int i = 0; i < kSums; ++i) whole[i] = no_whole();
  for (int c = first; c < first + kCells; ++c) {
#pragma GCC unroll 8
    for (int run = 0; run < S::cell; run += S::run) {
      Ints parts[kSums];
#pragma GCC unroll 16
      for (int i = 0; i < kSums; ++i)
        parts[i] = S::offset && kWideParts ? same_four(x[i % kTokens] + R::sums + 4 * c) : no_ints();
#pragma GCC unroll 32
      for (int e = run; e < run + S::run; e += 4) {
        Quad<S::width> four[kPanels];
#pragma GCC unroll 2
        for (int i = 0; i < kPanels; ++i)
          four[i] = load_quad<S::width>(w[i].q + (c * (S::cell / 4) + e / 4) * S::width * kVectorBytes);
#pragma GCC unroll 16
        for (int i = 0; i < kSums; ++i) {
          Ints& part = parts[i % kPanels * kTokens + i / kPanels];  // a token's panels one after the other
          part =
              add_four<S::is_signed>(part, four[i % kPanels], x[i / kPanels] + (c * S::cell + e) * S::width);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < kSums; ++i)
        whole[i] = fold<S::scaled, kOnce, S::width>(whole[i], parts[i], w[i / kTokens].s + c * kVectorBytes);
    }
    if constexpr (S::offset && !kWideParts && !S::scaled)
#pragma GCC unroll 16
      for (int i = 0; i < kSums; ++i) whole[i] = plus(whole[i], same_four(x[i % kTokens] + R::sums + 4 * c));
  }
  if constexpr (S::offset && !kWideParts && S::scaled)
    for (int c = first; c < first + kCells; c += 2)
#pragma GCC unroll 16
      for (int i = 0; i < kSums; ++i)
        whole[i] = add_pair(whole[i], load_bytes(w[i / kTokens].u + c / 2 * kVectorBytes),
                            x[i % kTokens] + R::shorts + 2 * c);
}

// acc = fma(m dx, M, acc).
template <class S, int kTokens>
JUNO_BOTH void panel_minimum(Floats m, const std::byte* u, const std::byte* const* x, const float* dx,
                             Floats* acc) {
  using R = RecordOf<S>;
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    Ints sum;
    if constexpr (S::minimum == Minimum::kOne) {
      sum = same_four(x[t] + R::sums);
    } else {
      sum = no_ints();
#pragma GCC unroll 4
      for (int c = 0; c < S::block / S::cell; c += 2)
        sum = add_pair(sum, load_bytes(u + c / 2 * kVectorBytes), x[t] + R::shorts + 2 * c);
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

// Group g: `blocks` blocks of kPanels panels times kTokens rows of activations, added into the tree.
template <class S, int kTokens, int kPanels>
[[gnu::noinline]] void panel_group(const Panel* panels, int64_t blocks, const PanelTile& tile, int g) {
  using R = RecordOf<S>;
  constexpr int kCells = S::block / S::cell, kUnits = S::block / S::unit, kSums = kTokens * kPanels;
  Floats acc[kSums];
  Panel w[kPanels];
  const std::byte* x[kTokens];
#pragma GCC unroll 16
  for (int i = 0; i < kSums; ++i) acc[i] = no_floats();
#pragma GCC unroll 2
  for (int i = 0; i < kPanels; ++i) w[i] = panels[i];
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) x[t] = tile.x + t * tile.x_stride;
  const uint8_t* ahead = tile.ahead;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t line = 0; line < tile.lines; ++line, ahead += 64)
#pragma GCC unroll 2
      for (int i = 0; i < kPanels; ++i) __builtin_prefetch(ahead + i * tile.panel_bytes, 0, 2);
    for (int unit = 0; unit < kUnits; ++unit) {
      Whole whole[kSums];
      panel_unit<S, kTokens, kPanels>(w, x, unit * (kCells / kUnits), whole);
#pragma GCC unroll 16
      for (int i = 0; i < kSums; ++i) {
        const Floats s =
            wide_mul(wide_load(w[i / kTokens].d), all_floats(float_at(x[i % kTokens] + R::scale)));
        acc[i] = wide_fma(s, value_of(whole[i]), acc[i]);
      }
    }
    if constexpr (S::minimum != Minimum::kNone) {
      float dx[kTokens];
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) dx[t] = float_at(x[t] + R::scale);
#pragma GCC unroll 2
      for (int i = 0; i < kPanels; ++i)
        panel_minimum<S, kTokens>(wide_load(w[i].m), w[i].u, x, dx, acc + i * kTokens);
    }
#pragma GCC unroll 2
    for (int i = 0; i < kPanels; ++i) {
      w[i].q += S::block / 4 * kVectorBytes * S::width;
      w[i].s += kCells * kVectorBytes;
      w[i].u += S::pairs * kVectorBytes;
      w[i].d += kPanelRows;
      w[i].m += kPanelRows;
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) x[t] += R::bytes;
  }
#pragma GCC unroll 2
  for (int i = 0; i < kPanels; ++i)
    add_to_tree<kTokens>(acc + i * kTokens, tile.sums + i * tile.panel_sums, g);
}

// kTokens at a time as long as there are so many.
template <class S, int kTokens, int kPanels>
JUNO_BOTH void panel_tiles(const Panel* w, int64_t blocks, PanelTile& tile, int g, int& tokens) {
  for (; tokens >= kTokens; tokens -= kTokens) {
    panel_group<S, kTokens, kPanels>(w, blocks, tile, g);
    tile.x += kTokens * tile.x_stride;
    tile.ahead += blocks * tile.lines * 64;
    tile.sums += kTokens * kLevels * kPanelRows;
  }
}

}  // namespace
}  // namespace juno::cpu

#endif
