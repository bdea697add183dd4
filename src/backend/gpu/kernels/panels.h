// SPDX-License-Identifier: Apache-2.0
// Activations of many tokens, rounded (docs/numerics.md §2), as halves in the order in which tensor cores
// take them. Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/prompt_shapes.h"
#include "backend/gpu/kernels/tiles.h"
#include "base/math.h"
#include "quant/activation.h"

namespace juno::gpu {

// One lane of four takes a quarter of a unit's packed words, word w of a cell of 32 being the elements 4w ..
// 4w+3 and 16+4w .. 16+4w+3. This is the element of a unit of kUnit that lane's i-th weight is, i < kUnit /
// 4: of each word the lower four, then the upper four.
template <int kUnit>
JUNO_BOTH constexpr int element_of(int lane, int i) {
  const int word = lane * (kUnit / 32) + i / 8;
  return word / 4 * 32 + i % 8 / 4 * 16 + word % 4 * 4 + i % 4;
}

JUNO_GPU float activated(int act, float x) {
  return act == 0 ? silu(x) : act == 1 ? gelu_tanh(x) : gelu_erf(x);
}

// What four lanes hold of 128 elements of one row, 32 each: kBlock elements share a scale.
template <int kUnit, int kBlock>
struct RowPiece {
  static constexpr int kBlocks = kStageDepth / kBlock;
  static constexpr int kShare = kBlock / 4;  // elements of a block that a lane holds

  float x[32];
  int q[32];
  float d[kBlocks];

  JUNO_GPU void load(const RoundArgs& a, int64_t token, int64_t stage) {
    JUNO_UNROLL
    for (int i = 0; i < 32; i += 4) {
      const int64_t k =
          stage * kStageDepth + i / (kUnit / 4) * kUnit + element_of<kUnit>(lane() % 4, i % (kUnit / 4));
      Floats4 v = {}, up = {};
      if (token < a.tokens && k < a.k) {
        v = *reinterpret_cast<const Floats4*>(a.x + token * a.k + k);
        if (a.up) up = *reinterpret_cast<const Floats4*>(a.up + token * a.k + k);
      }
      JUNO_UNROLL
      for (int j = 0; j < 4; ++j) x[i + j] = a.up ? activated(a.act, v.x[j]) * up.x[j] : v.x[j];
    }
  }

  JUNO_GPU void quantise() {
    JUNO_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      uint32_t top = 0;
      JUNO_UNROLL
      for (int i = b * kShare; i < (b + 1) * kShare; ++i) {
        const uint32_t bits = bits_of(magnitude(x[i]));
        top = bits > top ? bits : top;
      }
      JUNO_UNROLL
      for (int mask = 1; mask < 4; mask *= 2) {
        const uint32_t other = shuffle_xor(top, mask);
        top = other > top ? other : top;
      }
      const float largest = float_of(top);
      const bool zero = largest < 0x1p-100f;
      const float r = zero ? 0.0f : quant::kMaxQ / largest;
      d[b] = zero ? 0.0f : largest / quant::kMaxQ;
      JUNO_UNROLL
      for (int i = b * kShare; i < (b + 1) * kShare; ++i) q[i] = static_cast<int8_t>(rne_int(x[i] * r));
    }
  }

  // What the rounding left over.
  JUNO_GPU void keep_rest() {
    JUNO_UNROLL
    for (int i = 0; i < 32; ++i) x[i] = fma(-d[i / kShare], static_cast<float>(q[i]), x[i]);
  }

  // The sums of 16 and 16 elements of cell `lane % 4`.
  JUNO_GPU uint32_t sums() const {
    uint32_t mine = 0;
    JUNO_UNROLL
    for (int cell = 0; cell < 4; ++cell) {
      int low = 0, high = 0;
      JUNO_UNROLL
      for (int i = 0; i < 32; ++i) {
        const int unit = i / (kUnit / 4);
        // The cell of this lane's element i: fixed for units of 32, the lane's own for larger ones.
        const int own = (unit * kUnit + element_of<kUnit>(lane() % 4, i % (kUnit / 4))) / 32;
        if (own == cell) (i % 8 < 4 ? low : high) += q[i];
      }
      JUNO_UNROLL
      for (int mask = 1; mask < 4; mask *= 2) {
        low += shuffle_xor(low, mask);
        high += shuffle_xor(high, mask);
      }
      if (cell == lane() % 4)
        mine = static_cast<uint32_t>(float_to_half(static_cast<float>(low))) |
               static_cast<uint32_t>(float_to_half(static_cast<float>(high))) << 16;
    }
    return mine;
  }

  JUNO_GPU void store(const RoundArgs& a, int64_t row, int64_t stage, int64_t rows) const {
    const int64_t at = row / kPanelRows * panel_stages(a.k) + stage;
    const int group = static_cast<int>(row % kPanelRows) / 8, in_group = static_cast<int>(row % 8);
    auto* to = reinterpret_cast<unsigned char*>(a.y.q) + at * kPanelStage + lane() % 4 * 4;
    JUNO_UNROLL
    for (int i = 0; i < 32; i += 4) {
      JUNO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float first = static_cast<float>(q[i + half]), second = static_cast<float>(q[i + half + 2]);
        *reinterpret_cast<uint32_t*>(to + piece_at(kPanelRows / 8, group, i / 4 * 2 + half, in_group)) =
            static_cast<uint32_t>(float_to_half(first)) | static_cast<uint32_t>(float_to_half(second)) << 16;
      }
    }
    auto* h = reinterpret_cast<unsigned char*>(a.y.h) + at * kPanelSums;
    *reinterpret_cast<uint32_t*>(h + (row % kPanelRows) * 16 + lane() % 4 * 4) = sums();
    if (lane() % 4 == 0)
      for (int b = 0; b < kBlocks; ++b) a.y.d[(stage * kBlocks + b) * rows + row] = d[b];
  }
};

// One warp rounds 128 elements of eight rows.
template <int kUnit, int kBlock>
JUNO_GPU void round_piece(const RoundArgs& a, int64_t group, int64_t stage) {
  const int64_t row = group * 8 + lane() / 4;
  const int64_t token = row / a.planes;
  RowPiece<kUnit, kBlock> piece;
  piece.load(a, token, stage);
  piece.quantise();
  if (a.planes == 2) {
    RowPiece<kUnit, kBlock> rest = piece;
    rest.keep_rest();
    rest.quantise();
    if (row % 2 == 1) piece = rest;
  }
  piece.store(a, row, stage, padded_to(static_cast<int64_t>(a.tokens) * a.planes, kPanelRows));
}

// Grid: (warps for stages, groups of eight rows, whole panels of them).
JUNO_GPU void round_panels(const RoundArgs& a) {
  wait_dependency();
  const int64_t stage = static_cast<int64_t>(block_x()) * warps() + warp();
  if (stage >= panel_stages(a.k)) return;
  const int64_t group = block_y();
  if (a.block == 128 && a.unit == 128) return round_piece<128, 128>(a, group, stage);
  if (a.block == 128 && a.unit == 64) return round_piece<64, 128>(a, group, stage);
  if (a.block == 128) return round_piece<32, 128>(a, group, stage);
  if (a.block == 64 && a.unit == 64) return round_piece<64, 64>(a, group, stage);
  if (a.block == 64) return round_piece<32, 64>(a, group, stage);
  round_piece<32, 32>(a, group, stage);
}

}  // namespace juno::gpu
