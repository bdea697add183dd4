// SPDX-License-Identifier: Apache-2.0
// A panel times one row of activations: each block meets it in registers, where its bits are taken apart, so
// that memory is read while products are added. Included by the files of vec/ only.
#pragma once
#include "backend/cpu/vec/panel_group.h"
#include "backend/cpu/vec/panel_read.h"

#if defined(JUNO_PANELS)

namespace juno::cpu {
namespace {

// Where elements go (raw.h) to be multiplied at once: whole [units of a block] and parts [its runs].
template <class F, int kBlock>
struct PanelSums {
  using S = ShapeOf<F, kBlock, 1>;
  using R = RecordOf<S>;
  const std::byte *x, *s;  // activations, and sub-scales [cells]
  Ints* parts;
  Whole* whole;
  JUNO_BOTH void put(int i, Bytes v) const {
    constexpr bool kOnce = S::unit == S::cell && S::run == S::cell;
    const std::byte* const record = x + i / kBlock * R::bytes;
    Ints& part = parts[i / S::run];
    if (i % S::run == 0)
      part = S::offset && kWideParts ? same_four(record + R::sums + i % kBlock / S::cell * 4) : no_ints();
    part = add_four<S::is_signed>(part, v, record + i % kBlock);
    if (i % S::run == S::run - 4)
      whole[i / S::unit] =
          fold<S::scaled, kOnce, 1>(whole[i / S::unit], part, s + i / S::cell * kVectorBytes);
  }
};

// Adds to `whole` what offsets come to in activation block x, where `put` does not begin with it.
template <class S>
JUNO_BOTH void add_offsets(const std::byte* x, const std::byte* u, Whole* whole) {
  using R = RecordOf<S>;
  constexpr int kStepCells = S::scaled && S::block > S::cell ? 2 : 1;
  if constexpr (S::offset && !kWideParts) {
#pragma GCC unroll 8
    for (int c = 0; c < S::block / S::cell; c += kStepCells) {
      Whole& own = whole[c * S::cell / S::unit];
      if constexpr (S::scaled)
        own = add_pair(own, load_bytes(u + c / 2 * kVectorBytes), x + R::shorts + 2 * c);
      else own = plus(own, same_four(x + R::sums + 4 * c));
    }
  }
}

// The sum of the group at hand, and the tree of those before.
struct PanelRow {
  const std::byte* x;  // activations of the whole row
  float* sums;         // [kLevels, kPanelRows]
  int64_t blocks;      // of activations
  int64_t end;         // where group g ends
  Floats acc;
  int g;
  JUNO_BOTH void next_group() {
    add_to_tree<1>(&acc, sums, g);
    acc = no_floats();
    end = quant::group_begin(++g + 1, blocks);
  }
};

// Block b of the file.
template <class F, int kBlock>
JUNO_BOTH void multiply_block(const RawRows& w, const Singles& singles, int64_t b, PanelRow& row) {
  using S = ShapeOf<F, kBlock, 1>;
  using R = RecordOf<S>;
  constexpr int kSize = F::block_size, kPerBlock = kSize / kBlock, kUnits = kBlock / S::unit;
  constexpr bool kSingles = kBlock == S::cell;
  alignas(64) std::byte s[kSize / S::cell * kVectorBytes], u[kPerBlock * S::pairs * kVectorBytes];
  if constexpr (kSize == 256) Raw<F>::scales(w, PanelScales<kSingles>{s, u});
  Ints parts[kSize / S::run];
  Whole whole[kSize / S::unit];
#pragma GCC unroll 8
  for (Whole& own : whole) own = no_whole();
  const std::byte* x = row.x + b * kPerBlock * R::bytes;
  Raw<F>::get(w, singles.fifths, PanelSums<F, kBlock>{x, s, parts, whole});
  const Floats d = scale_d<F>(singles);
#pragma GCC unroll 8
  for (int i = 0; i < kPerBlock; ++i, x += R::bytes) {
    const std::byte* const own_u = u + i * S::pairs * kVectorBytes;
    add_offsets<S>(x, own_u, whole + i * kUnits);
    while (b * kPerBlock + i == row.end) row.next_group();
    const float dx = float_at(x + R::scale);
    const Floats scale = wide_mul(d, all_floats(dx));
#pragma GCC unroll 8
    for (int j = 0; j < kUnits; ++j) row.acc = wide_fma(scale, value_of(whole[i * kUnits + j]), row.acc);
    if constexpr (S::minimum != Minimum::kNone)
      panel_minimum<S, 1>(scale_m<F>(singles), own_u, &x, &dx, &row.acc);
  }
}

// All groups of a panel; the result is in the first level of tile.sums.
template <class F, int kBlock>
[[gnu::noinline]] void multiply_one(const Product& p, const PanelRows& rows, const PanelTile& tile) {
  PanelRow row{tile.x, tile.sums, p.blocks(), quant::group_begin(1, p.blocks()), no_floats(), 0};
  visit_blocks<F>(rows, 0, p.blocks() / (F::block_size / kBlock),
                  [&](const RawRows& w, const Singles& singles, int64_t b)
                      [[gnu::always_inline]] { multiply_block<F, kBlock>(w, singles, b, row); });
  while (row.g < quant::kGroups) row.next_group();
}

}  // namespace
}  // namespace juno::cpu

#endif
