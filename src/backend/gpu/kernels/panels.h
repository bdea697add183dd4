// SPDX-License-Identifier: Apache-2.0
// Activations of many tokens, rounded (docs/numerics.md §2), as halves in the order in which tensor cores
// take them. Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/halves.h"
#include "backend/gpu/kernels/prompt_shapes.h"
#include "backend/gpu/kernels/rows.h"

namespace juno::gpu {

// One lane of four takes a quarter of a unit's packed words, word w of a cell of 32 being the elements 4w ..
// 4w+3 and 16+4w .. 16+4w+3: of each word the lower four, then the upper four. For elements 4m .. 4m+3 of a
// stage: the lane, and which four of that lane's 32 these are.
struct InFragments {
  uint32_t lane, four;
};
JUNO_GPU InFragments in_fragments(uint32_t m, uint32_t unit) {
  const uint32_t word = m % (unit / 4) / 8 * 4 + m % 4, words = unit / 32;  // of the unit; of a lane
  return {word / words, m / (unit / 4) * (unit / 16) + word % words * 2 + m % 8 / 4};
}

// Rows of Panels.
struct PanelSink {
  const RoundArgs& a;

  JUNO_GPU void q(int row, int i, uint32_t four) const {
    const uint32_t over = four ^ 0x80808080u;  // 128 more, so that bytes have no sign
    const uint32_t even = fma_halves(over_1024<0, 2>(over), integer_pair(1), integer_pair(-1152)),
                   odd = fma_halves(over_1024<1, 3>(over), integer_pair(1), integer_pair(-1152));
    if (a.q[0]) put<32>(a.q[0], row, i, even, odd);
    if (a.q[1]) put<64>(a.q[1], row, i, even, odd);
    if (a.q[2]) put<128>(a.q[2], row, i, even, odd);
  }
  JUNO_GPU void h(int row, int i, uint32_t sums) const {
    const auto half = [](uint32_t sum) {
      return static_cast<uint32_t>(float_to_half(static_cast<float>(static_cast<int16_t>(sum))));
    };
    const int at = i / 32;
    reinterpret_cast<uint32_t*>(a.y.h)[(int64_t{at / 4} * a.y.rows + row) * 4 + at % 4] =
        half(sums) | half(sums >> 16) << 16;
  }
  JUNO_GPU void d(int row, int i, float d) const {
    const int log2 = a.from.block == 128 ? 7 : a.from.block == 64 ? 6 : 5;
    a.y.d[int64_t{i >> log2} * a.y.rows + row] = d;
  }

 private:
  // Neighbours in a piece exchange words, so that each has eight bytes of one to write; all lanes come.
  template <uint32_t kUnit>
  JUNO_GPU void put(uint16_t* to, int row, int i, uint32_t even, uint32_t odd) const {
    constexpr int kNeighbour = kUnit == 128 ? 8 : kUnit / 32;
    const InFragments at = in_fragments(static_cast<uint32_t>(i) % kStageDepth / 4, kUnit);
    const bool second = at.lane % 2 != 0;
    const uint32_t other = shuffle_xor(second ? even : odd, kNeighbour);
    unsigned char* stage = reinterpret_cast<unsigned char*>(to) +
                           int64_t{i / kStageDepth} * a.y.rows * (kStageDepth * 2) + at.lane / 2 * 8;
    *reinterpret_cast<Pair32*>(stage + piece_at(a.y.rows, row, static_cast<int>(2 * at.four + second))) =
        second ? Pair32{{other, odd}} : Pair32{{even, other}};
  }
};

// Elements i … i + 3 of a row, as they will be rounded.
JUNO_GPU void read_four(const RoundSource& from, const Normed& of, int i, float (&v)[4]) {
  const Floats4 x = *reinterpret_cast<const Floats4*>(from.x + i);
  Floats4 up = {};
  if (from.source == Source::kGated) up = *reinterpret_cast<const Floats4*>(from.up + i);
  JUNO_UNROLL
  for (int j = 0; j < 4; ++j)
    v[j] = from.source == Source::kNorm    ? normed(of, from.norm, x.x[j], i + j)
           : from.source == Source::kGated ? activate(from.act, x.x[j]) * up.x[j]
                                           : x.x[j];
}

// Grid: pieces of a row, tokens and what fills up Panels::rows. What is behind the last token or the last
// element is 0. Rows are read where they lie: so many blocks are resident that nothing is gained by keeping
// them.
JUNO_GPU void round_panels(const RoundArgs& a) {
  begin();
  const QuantiseArgs& how = a.from;
  const Piece piece = piece_of_row(how.k);
  if (piece.count <= 0) return;
  const int t = block_y(), end = static_cast<int>(padded_to(piece.first + piece.count, kStageDepth));
  const bool there = t < how.tokens;
  const int64_t row = int64_t{there ? t : 0} * how.k;
  const RoundSource from{how.x + row, how.up ? how.up + row : nullptr, how.norm, how.source, how.act};
  Normed of;
  if (there && how.source == Source::kNorm) of = norm_of_row(from.x, how.k, how.norm, shared<float>());
  const PanelSink sink{a};
  JUNO_UNROLL_BY(1)
  for (int i = piece.first + thread() * 4; i - lane() * 4 < end; i += threads() * 4) {
    float v[4] = {};
    if (there && i < how.k) read_four(from, of, i, v);
    sink_four(v, i, {end, how.block, how.planes, t * how.planes}, sink);
  }
}

}  // namespace juno::gpu
