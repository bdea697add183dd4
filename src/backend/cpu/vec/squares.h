// SPDX-License-Identifier: Apache-2.0
// Panels times kSquare rows of activations by instructions that multiply whole tiles. Sub-scales are
// multiplied into the weights first, so that a tile's sums are those of a unit. Included by the files of vec/
// only.
#pragma once
#include "backend/cpu/vec/panel_group.h"

#if defined(JUNO_SQUARES)

namespace juno::cpu {
namespace {

// A group's weights with their sub-scales in one or two planes of signed bytes at `to`.
template <class S>
JUNO_BOTH void fold_scales(const Panel& w, int64_t blocks, int offset, std::byte* to, int64_t plane) {
  for (int64_t c = 0; c < blocks * (S::block / S::cell); ++c) {
    const WideScale s = widen_scale(load_scale(w.s + c * kVectorBytes));
#pragma GCC unroll 8
    for (int i = 0; i < S::cell / 4; ++i) {
      const int64_t at = (c * (S::cell / 4) + i) * kVectorBytes;
      store_scaled<S::planes>(load_bytes(w.q + at), offset, s, to + at, plane);
    }
  }
}

// acc = fma(m dx, M, acc) for the block at x.
template <class S>
JUNO_BOTH void square_minimum(const Panel& w, const std::byte* x, int64_t stride, Floats* acc) {
  using R = RecordOf<S>;
  const std::byte* own[kSquare];
  float dx[kSquare];
#pragma GCC unroll 16
  for (int t = 0; t < kSquare; ++t) {
    own[t] = x + t * stride;
    dx[t] = float_at(own[t] + R::scale);
  }
  panel_minimum<S, kSquare>(wide_load(w.m), w.u, own, dx, acc);
}

JUNO_BOTH Ints join_planes(Ints first, Ints second) { return plus(first, up32<7>(second)); }

// acc[t] with unit `unit` of a block added.
template <class S>
JUNO_BOTH void add_square(const Panel& w, const std::byte* x, int64_t stride, int unit, const int32_t* sums,
                          Floats* acc) {
  using R = RecordOf<S>;
  const Floats d = wide_load(w.d);
#pragma GCC unroll 16
  for (int t = 0; t < kSquare; ++t) {
    const std::byte* own = x + t * stride;
    Ints sum = load_ints(sums + t * kPanelRows);
    if constexpr (S::planes == 2) sum = join_planes(sum, load_ints(sums + (kSquare + t) * kPanelRows));
    if constexpr (S::offset && !S::scaled)
      for (int c = 0; c < S::unit / S::cell; ++c)
        sum = plus(sum, same_four(own + R::sums + 4 * (unit * (S::unit / S::cell) + c)));
    acc[t] = wide_fma(wide_mul(d, all_floats(float_at(own + R::scale))), to_floats(sum), acc[t]);
  }
}

// As panel_group. A unit's tiles are multiplied before the sums of the one before are used, so that neither
// waits.
template <class S>
[[gnu::noinline]] void square_group(Panel w, const std::byte* q, int64_t plane, int64_t blocks,
                                    const PanelTile& tile, int g) {
  using R = RecordOf<S>;
  constexpr int kUnits = S::block / S::unit;
  alignas(64) int32_t sums[2][2 * kSquare * kPanelRows];
  const int64_t units = blocks * kUnits;
  const auto start = [&](int64_t unit) {
    const std::byte* x = tile.x + unit / kUnits * R::bytes + unit % kUnits * S::unit;
    multiply_square<S::planes, S::unit, S::scaled>(x, tile.x_stride, q + unit * S::unit * kPanelRows, plane,
                                                   sums[unit & 1]);
  };
  Floats acc[kSquare];
#pragma GCC unroll 16
  for (Floats& sum : acc) sum = no_floats();
  if (units > 0) start(0);
  for (int64_t unit = 0; unit < units; ++unit) {
    if (unit + 1 < units) start(unit + 1);
    const int own = static_cast<int>(unit % kUnits);
    const std::byte* x = tile.x + unit / kUnits * R::bytes;
    add_square<S>(w, x, tile.x_stride, own, sums[unit & 1], acc);
    if (own + 1 < kUnits) continue;
    if constexpr (S::minimum != Minimum::kNone) square_minimum<S>(w, x, tile.x_stride, acc);
    w.u += S::pairs * kVectorBytes;
    w.d += kPanelRows;
    w.m += kPanelRows;
  }
  add_to_tree<kSquare>(acc, tile.sums, g);
}

// Rows of activations, and room for a group of a panel in two planes.
struct SquareWork {
  int count;
  std::byte* folded;
};

// Whole squares, and how many rows of activations they were.
template <class S>
JUNO_BOTH int multiply_squares(const Product& p, const Panel& w, int64_t blocks, PanelTile tile,
                               const SquareWork& work, int g) {
  if (work.count < kSquare) return 0;
  const int64_t plane = p.chunk() * kPanelRows;
  const std::byte* q = w.q;
  if constexpr (S::scaled) {
    fold_scales<S>(w, blocks, p.times < 0 ? -p.times : 0, work.folded, plane);
    q = work.folded;
  }
  int t = 0;
  for (; t + kSquare <= work.count; t += kSquare) {
    square_group<S>(w, q, plane, blocks, tile, g);
    tile.x += kSquare * tile.x_stride;
    tile.sums += kSquare * kLevels * kPanelRows;
  }
  return t;
}

}  // namespace
}  // namespace juno::cpu

#endif
