// SPDX-License-Identifier: Apache-2.0
// Weights as tensor cores take them: of rows r and r + 8 a lane holds a quarter of each unit of K (panels.h
// says which), as integers v in pairs of halves. Included by the kernels' units only.
#pragma once
#include <type_traits>

#include "backend/gpu/kernels/halves.h"
#include "backend/gpu/kernels/staged.h"

namespace juno::gpu {

// Leaves out a cell's first `words` words of 4 elements, and the first `words` of its second half.
JUNO_GPU void skip_words(Quad32& nibbles, int words) {
  if (words & 2) {
    nibbles.x[0] = nibbles.x[2];
    nibbles.x[1] = nibbles.x[3];
  }
  if (words & 1) nibbles.x[0] = nibbles.x[1];
}
JUNO_GPU void skip_words(Pair32& pairs, int words) {
  pairs.x[0] >>= 2 * words;
  pairs.x[1] >>= 2 * words;
}
JUNO_GPU void skip_words(uint32_t& bits, int words) { bits >>= words; }
template <class Raw>
JUNO_GPU void skip_words_of(Raw& raw, int words) {
  if constexpr (requires { raw.q; }) skip_words(raw.q, words);
  if constexpr (requires { raw.low; }) skip_words(raw.low, words);
  if constexpr (requires { raw.high; }) skip_words(raw.high, words);
}

template <class F, int kUnit_>
class Fragments {
  using L = Layout<F>;
  static constexpr bool kSigned = L::kOffset == 0 && !quant::HasMin<F>;  // bytes of q

 public:
  static constexpr int kUnit = kUnit_;
  static constexpr bool kMinima = quant::HasMin<F>;
  // Halves hold integers to 2048: larger v are the sum of two, by an even and a remaining part of the
  // sub-scale.
  static constexpr int kParts = F::max_v > 2048 ? 2 : 1;
  static constexpr int kWords = kUnit_ / 32;  // of a cell, for a lane: each makes two steps of 16
  using Words = uint32_t[kWords][2 * kParts][4];

  // `step` of kUnit elements, of row `row` of the tile and of row + 8.
  template <int kRows>
  JUNO_GPU void load(const unsigned char* tile, uint32_t row, uint32_t step) {
    cell_ = static_cast<int>(step * (kUnit / kCell) % 8) + lane() % 4 * kWords / 4;
    load_row(StagedRow<kRows, 0>{tile, row}, 0);
    load_row(StagedRow<kRows, 8>{tile, row}, 1);
  }

  // Fragments of word w: its two steps, then their second parts; the scales of both rows.
  JUNO_GPU void expand(int w, uint32_t (&to)[2 * kParts][4], float (&d)[2]) const {
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i) {
      const Scales scales = L::scales(head_[i], raw_[i], cell_);
      d[i] = scales.d;
      typename L::Raw raw = raw_[i];
      if constexpr (kWords < 4) skip_words_of(raw, lane() % 4 * kWords % 4);
      if constexpr (kNibbles) {
        expand_nibbles(raw.q.x[w], scale_pair(scales.s[0], 0, 0), i, to);
        continue;
      }
      uint32_t words[8];
      L::words(raw, words);
      JUNO_UNROLL
      for (int half = 0; half < 2; ++half) {
        JUNO_UNROLL
        for (int part = 0; part < kParts; ++part) {
          const uint32_t scale = scale_pair(scales.s[0], half, part);
          auto& step = to[2 * part + half];
          const uint32_t q = kSigned ? words[4 * half + w] ^ 0x80808080u : words[4 * half + w];
          step[i] = value(over_1024<0, 2>(q), scale);
          step[2 + i] = value(over_1024<1, 3>(q), scale);
        }
      }
    }
  }

  // u of the two sums of 16 that a lane is at, of the blocks' four cells in `stage`, or 0 where it is not
  // `mine`.
  JUNO_GPU void minima(int stage, bool mine, uint32_t (&to)[2], float (&m)[2]) const {
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i) {
      const Scales scales = L::scales(head_[i], raw_[i], 4 * stage + lane() % 4);
      m[i] = scales.m;
      constexpr int kSecond = L::kSub == SubScales::kFor16 ? 1 : 0;
      const uint32_t u = fma_halves(over_1024<0, kSecond>(scales.u[0]), integer_pair(1), integer_pair(-1024));
      to[i] = mine ? u : 0;
    }
  }

 private:
  template <class Row>
  JUNO_GPU void load_row(const Row& row, int i) {
    raw_[i] = L::load(row, cell_);
    head_[i] = L::head(row, cell_);
  }

  // Straight from nibbles, the upper ones as they stand: 1024 + 16 q, under a sixteenth of the scale.
  static constexpr bool kNibbles =
      std::is_same_v<F, quant::Q4_K> || std::is_same_v<F, quant::Q4_0> || std::is_same_v<F, quant::Q4_1>;
  JUNO_GPU static void expand_nibbles(uint32_t q, uint32_t scale, int row, uint32_t (&to)[2 * kParts][4]) {
    const uint32_t upper = fma_halves(scale, both(0x2c00), 0);  // scale / 16
    const uint32_t less = fma_halves(scale, integer_pair(-1024 - L::kOffset), 0);
    const uint32_t less_upper = fma_halves(scale, integer_pair(-64 - L::kOffset), 0);
    JUNO_UNROLL
    for (int odd = 0; odd < 2; ++odd) {
      const uint32_t x = q >> (8 * odd);
      to[0][2 * odd + row] = fma_halves(masked_over_1024(x, 0x000f000fu), scale, less);
      to[1][2 * odd + row] = fma_halves(masked_over_1024(x, 0x00f000f0u), upper, less_upper);
    }
  }

  JUNO_GPU static uint32_t scale_pair(uint32_t bytes, int half, int part) {
    if constexpr (L::kSub == SubScales::kNone) return integer_pair(1);
    if constexpr (kParts == 2) bytes &= part == 0 ? 0xfefefefeu : 0x01010101u;
    if constexpr (!quant::HasMin<F>) bytes ^= 0x80808080u;  // signed
    if constexpr (L::kSub == SubScales::kFor16) bytes >>= 8 * half;
    return fma_halves(over_1024<0, 0>(bytes), integer_pair(1),
                      integer_pair(quant::HasMin<F> ? -1024 : -1152));
  }
  // From 1024 + q (+ 128 where q has a sign) to v.
  JUNO_GPU static uint32_t value(uint32_t q, uint32_t scale) {
    if constexpr (quant::HasMin<F> && L::kSub != SubScales::kNone) {  // 1024 · scale is a half
      return fma_halves(q, scale, fma_halves(scale, integer_pair(-1024), 0));
    } else {
      const uint32_t x = fma_halves(q, integer_pair(1), integer_pair(-1024 - (kSigned ? 128 : L::kOffset)));
      return L::kSub == SubScales::kNone ? x : fma_halves(x, scale, 0);
    }
  }

  typename L::Raw raw_[2];
  typename L::Head head_[2];
  int cell_ = 0;
};

// Six bits, set as they stand into 64 + q: times the even part of the sub-scale and times the rest of it,
// each less 96 times that part, which a half holds. Of a cell a lane loads no more than its word.
template <>
class Fragments<quant::Q6_K, 32> {
  using F = quant::Q6_K;

 public:
  static constexpr int kUnit = 32, kWords = 1, kParts = 2;
  static constexpr bool kMinima = false;
  using Words = uint32_t[kWords][2 * kParts][4];

  template <int kRows>
  JUNO_GPU void load(const unsigned char* tile, uint32_t row, uint32_t step) {
    load_row(StagedRow<kRows, 0>{tile, row}, static_cast<int>(step % 8), 0);
    load_row(StagedRow<kRows, 8>{tile, row}, static_cast<int>(step % 8), 1);
  }
  JUNO_GPU void expand(int, uint32_t (&to)[2 * kParts][4], float (&d)[2]) const {
    const int up = 2 * (lane() % 4);  // where the upper bits of this lane's elements begin in each byte
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i) {
      d[i] = half_to_float(d_[i]);
      const uint32_t even = (scales_[i] & 0xfefeu) ^ 0x8080u, odd = scales_[i] & 0x0101u;
      JUNO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const uint32_t low = half == 0 ? low_[i] << 4 : low_[i],
                       later = half == 0 ? low_[i] >> 4 : low_[i] >> 8;
        const uint32_t first = sixty_four_and(low, high_[i].x[half] << (8 - up)),
                       second = sixty_four_and(later, high_[i].x[half] >> up);
        const uint32_t most = fma_halves(half == 0 ? over_1024<0, 0>(even) : over_1024<1, 1>(even),
                                         integer_pair(1), integer_pair(-1152)),
                       rest = (odd >> (8 * half) & 1) * integer_pair(1);
        add_part(first, second, most, to[half], i);
        add_part(first, second, rest, to[2 + half], i);
      }
    }
  }

 private:
  template <class Row>
  JUNO_GPU void load_row(const Row& row, int cell, int i) {
    low_[i] = constant4(unit<F, 0>(row, cell) + lane() % 4 * 4);
    high_[i] = constant8(unit<F, 1>(row, cell));
    scales_[i] = constant2(unit<F, 2>(row, 0) + cell * 2);
    d_[i] = constant2(unit<F, 3>(row, 0));
  }
  JUNO_GPU static uint32_t sixty_four_and(uint32_t low, uint32_t high) {
    return (low & 0x00f000f0u) | (high & 0x03000300u) | 0x54005400u;
  }
  JUNO_GPU static void add_part(uint32_t first, uint32_t second, uint32_t scale, uint32_t (&step)[4],
                                int row) {
    const uint32_t less = fma_halves(scale, integer_pair(-96), 0);
    step[row] = fma_halves(first, scale, less);
    step[2 + row] = fma_halves(second, scale, less);
  }

  uint32_t low_[2], scales_[2];
  Pair32 high_[2];
  uint16_t d_[2];
};

}  // namespace juno::gpu
