// SPDX-License-Identifier: Apache-2.0
// Integer products of a few tokens: kPair weight rows at a time, their eight groups side by side, so that the
// order of docs/numerics.md §3 is one vector operation per step. Included by the files of vec/ only.
#pragma once
#include "backend/cpu/vec/cells.h"
#include "backend/cpu/vec/pack.h"
#include "quant/dot.h"

#if defined(JUNO_WIDE)

namespace juno::cpu {
namespace {

// What is known of kPair rows before their bytes are read, in the thread's scratch. Index i = 8 * step +
// group is a block; [wide] arrays hold kWide numbers for each step.
struct Stage {
  int32_t *at, *block;            // [8 steps] bytes from the row's start, and the block's number
  uint8_t* d;                     // [wide] d and the minimum, both f16; d alone as f16 or f32
  int32_t *offset, *minimum;      // [units, wide], [wide]: sums to subtract, and M of the contract
  int32_t* sums;                  // [k/32] of one row
  uint32_t* scale[kPair];         // [k/16 or k/32] the sub-scale in both halves
  int16_t *s[kPair], *u[kPair];   // [k/16]
  int empty, ended[kGroupLanes];  // how many and which groups have no block left in the last step
  std::byte* cells;               // [8 steps, cells of a block] Bytes
};

JUNO_BOTH Stage stage(const Product& p, std::byte* scratch) {
  Stage s;
  const auto carve = [&](size_t bytes) {
    std::byte* at = scratch;
    scratch += (bytes + 63) / 64 * 64;
    return at;
  };
  const size_t steps = p.steps(), lanes = steps * kGroupLanes, wide = steps * kWide;
  s.at = reinterpret_cast<int32_t*>(carve(lanes * 4));
  s.block = reinterpret_cast<int32_t*>(carve(lanes * 4));
  s.d = reinterpret_cast<uint8_t*>(carve(wide * 4));
  s.offset = reinterpret_cast<int32_t*>(carve(wide * 4 * (p.block / 32)));
  s.minimum = reinterpret_cast<int32_t*>(carve(wide * 4));
  s.sums = reinterpret_cast<int32_t*>(carve(p.k / 32 * 4));
  for (int r = 0; r < kPair; ++r) {
    s.scale[r] = reinterpret_cast<uint32_t*>(carve(p.k / 16 * 4));
    s.s[r] = reinterpret_cast<int16_t*>(carve(p.k / 16 * 2));
    s.u[r] = reinterpret_cast<int16_t*>(carve(p.k / 16 * 2));
  }
  s.cells = carve(wide * p.block);
  return s;
}

// Blocks in the order of the steps. A group that has no block left repeats its last one: its scale is 0.
template <class F, int kBlock>
JUNO_BOTH void stage_order(const Product& p, Stage& s) {
  const int64_t blocks = p.blocks();
  s.empty = 0;
  for (int g = 0; g < kGroupLanes; ++g)
    if (quant::group_begin(g + 1, blocks) - quant::group_begin(g, blocks) < p.steps()) s.ended[s.empty++] = g;
  for (int step = 0; step < p.steps(); ++step) {
    for (int g = 0; g < kGroupLanes; ++g) {
      const int64_t b = quant::group_begin(g, blocks) + step, end = quant::group_begin(g + 1, blocks);
      const int64_t own = b < end ? b : end > 0 ? end - 1 : 0;
      s.block[step * 8 + g] = static_cast<int32_t>(own);
      s.at[step * 8 + g] = static_cast<int32_t>(own * kBlock / F::block_size * sizeof(typename F::Block));
    }
  }
}

template <class F>
JUNO_BOTH void stage_row(const Product& p, Rows row, const Stage& stage, int r) {
  const auto* blocks = reinterpret_cast<const typename F::Block*>(row[r]);
  const int steps = p.steps();
  for (int step = 0; step < steps; ++step) {
    const int32_t* at = stage.at + step * kGroupLanes;
    const int to = step * kWide + r * kGroupLanes;
#pragma GCC unroll 8
    for (int g = 0; g < kGroupLanes; ++g) {
      const auto& b = *reinterpret_cast<const typename F::Block*>(row[r] + at[g]);
      if constexpr (quant::HasMin<F>) std::memcpy(stage.d + (to + g) * 4, row[r] + at[g] + kScales<F>, 4);
      else if constexpr (HalfScale<F>) reinterpret_cast<uint16_t*>(stage.d)[to + g] = b.d;
      else reinterpret_cast<float*>(stage.d)[to + g] = F::d(b);
    }
  }
  if constexpr (F::block_size == 32) {
    constexpr int kBytes = HalfScale<F> && !quant::HasMin<F> ? 2 : 4;
    for (int i = 0; i < stage.empty; ++i)
      std::memset(stage.d + ((p.steps() - 1) * kWide + r * kGroupLanes + stage.ended[i]) * kBytes, 0, kBytes);
  } else {
    for (int64_t b = 0; b < p.k / 256; ++b) {
      Eight s[2], u[2];
      Cells<F>::scales(blocks[b], s, u);
      if constexpr (Cells<F>::sub == 32) {
        spread8(s[0], stage.scale[r] + b * 8);
        if constexpr (quant::HasMin<F>) spread8(u[0], reinterpret_cast<uint32_t*>(stage.u[r]) + b * 8);
      } else {
        spread8(s[0], stage.scale[r] + b * 16);
        spread8(s[1], stage.scale[r] + b * 16 + 8);
        spread16(s, stage.s[r] + b * 16);
        if constexpr (quant::HasMin<F>) spread16(u, stage.u[r] + b * 16);
      }
    }
  }
}

// to[.., kWide]: for each kCells cells the sum of factor · h, times kTimes.
template <int kCells, int kPerBlock, int kTimes>
JUNO_BOTH void stage_sums(const Product& p, const Stage& stage, const int16_t* factor, const int16_t* h,
                          int r, int32_t* to) {
  for (int64_t i = 0; i < p.k / 16; i += 16) pair_products(factor + i, h + i, stage.sums + i / 2);
  const int lanes = p.steps() * kGroupLanes;
  for (int i = 0; i < lanes; ++i) {
    for (int part = 0; part < kPerBlock; ++part) {
      const int32_t* from = stage.sums + (int64_t{stage.block[i]} * kPerBlock + part) * kCells;
      int32_t sum = 0;
      for (int c = 0; c < kCells; ++c) sum += from[c];
      to[(i / 8 * kPerBlock + part) * kWide + r * 8 + i % 8] = sum * kTimes;
    }
  }
}

inline constexpr int64_t kAhead = 4096;  // bytes of weights asked for before they are needed

// Cells from the file, or as they were stored for the first token.
template <class F, int kBlock>
struct FromFile {
  Rows row;
  const Stage& stage;
  // Asks for an eighth of what a later step takes.
  JUNO_BOTH void ask(int step, int g) const {
    constexpr int kBytes = kWide * kBlock * static_cast<int>(sizeof(typename F::Block)) / F::block_size;
#pragma GCC unroll 4
    for (int i = g * 64; i < kBytes; i += kGroupLanes * 64)
      __builtin_prefetch(row[0] + kAhead + step * kBytes + i);
  }
  JUNO_BOTH Bytes get(int i, unsigned c) const {
    const uint8_t* w[kPair];
    for (int r = 0; r < kPair; ++r) w[r] = row[r] + stage.at[i];
    if constexpr (F::block_size == 32) return cell<F>(w, 0);
    else return cell<F>(w, static_cast<unsigned>(stage.block[i]) % (256 / kBlock) * (kBlock / 32) + c);
  }
};
template <int kBlock>
struct FromCells {
  const Stage& stage;
  JUNO_BOTH void ask(int, int) const {}
  JUNO_BOTH Bytes get(int i, unsigned c) const {
    return load_bytes(stage.cells + (i * (kBlock / 32) + c) * sizeof(Bytes));
  }
};

template <class F>
JUNO_BOTH Ints add_cell(Ints acc, Bytes w, Bytes x, const Stage& stage, int64_t cell) {
  if constexpr (F::block_size == 32) {
    if constexpr (Cells<F>::is_signed) return dot_signed(acc, w, x);
    else return dot_unsigned(acc, w, x);
  } else {
    const auto s = Cells<F>::sub == 32 ? scale32(stage.scale, cell) : scale16(stage.scale, 2 * cell);
    if constexpr (Cells<F>::is_signed) return dot_scaled_signed(acc, w, x, s);
    else return dot_scaled(acc, w, x, s);
  }
}

template <class F>
JUNO_BOTH Floats staged_d(const Stage& stage, int step) {
  if constexpr (quant::HasMin<F>) return widen_low(stage.d + step * kWide * 4);
  else if constexpr (HalfScale<F>)
    return widen_f16(reinterpret_cast<const uint16_t*>(stage.d) + step * kWide);
  else return wide_load(reinterpret_cast<const float*>(stage.d) + step * kWide);
}
template <class F>
JUNO_BOTH Floats staged_m(const Stage& stage, int step) {
  const Floats m = widen_high(stage.d + step * kWide * 4);
  return kNegativeMinimum<F> ? wide_negative(m) : m;
}

// kPair rows times one row of activations: y[r].
template <class F, int kBlock, class Source>
[[gnu::noinline]] void dot_strip(const Product& p, const Source& w, const Stage& stage, const Strip& x,
                                 float* y) {
  constexpr int kCells = kBlock / 32, kUnitCells = kStep<F, kBlock> / 32, kUnits = kCells / kUnitCells;
  if constexpr (F::block_size == 256) {
    for (int r = 0; r < kPair; ++r) {
      if constexpr (Cells<F>::offset != 0)
        stage_sums<kUnitCells, kUnits, Cells<F>::offset>(p, stage, stage.s[r], x.h, r, stage.offset);
      if constexpr (quant::HasMin<F>) stage_sums<kCells, 1, 1>(p, stage, stage.u[r], x.h, r, stage.minimum);
    }
  }
  Floats acc = no_floats();
  const int steps = p.steps();
  for (int step = 0; step < steps; ++step) {
    const Floats dx = same_floats(x.d + step * 8), s = wide_mul(staged_d<F>(stage, step), dx);
    for (int unit = 0; unit < kUnits; ++unit) {
      Ints part[kGroupLanes];
#pragma GCC unroll 8
      for (int g = 0; g < kGroupLanes; ++g) {
        const int i = step * 8 + g;
        part[g] = no_ints();
        if (unit == 0) w.ask(step, g);
#pragma GCC unroll 4
        for (int c = unit * kUnitCells; c < (unit + 1) * kUnitCells; ++c)
          part[g] = add_cell<F>(part[g], w.get(i, c), same_bytes(x.q + (i * kCells + c) * 32), stage,
                                int64_t{stage.block[i]} * kCells + c);
      }
      Ints sum = add_parts(part);
      if constexpr (Cells<F>::offset != 0) {
        if constexpr (F::block_size == 32)
          sum = minus(sum, times(same_ints(x.sum + step * 8), Cells<F>::offset));
        else sum = minus(sum, load_ints(stage.offset + (step * kUnits + unit) * kWide));
      }
      acc = wide_fma(s, to_floats(sum), acc);
    }
    if constexpr (quant::HasMin<F>) {
      const Ints sum =
          F::block_size == 32 ? same_ints(x.sum + step * 8) : load_ints(stage.minimum + step * kWide);
      acc = wide_fma(wide_mul(staged_m<F>(stage, step), dx), to_floats(sum), acc);
    }
  }
  add_groups(acc, y);
}

template <class F, int kBlock, class Source>
JUNO_BOTH void multiply_pair(const Product& p, const Source& w, const Stage& stage, int64_t o, int64_t last) {
  for (int t = 0; t < p.tokens; ++t) {
    float y[kPair], low[kPair];
    dot_strip<F, kBlock>(p, w, stage, strip(p, t, 0), y);
    if (p.planes == 2) {
      dot_strip<F, kBlock>(p, w, stage, strip(p, t, 1), low);
      for (int r = 0; r < kPair; ++r) y[r] = y[r] + low[r];
    }
    for (int r = 0; r < kPair && o + r < last; ++r)
      p.y[t * p.outputs + o + r] = p.bias ? y[r] + p.bias[o + r] : y[r];
  }
}

template <class F, int kBlock>
JUNO_BOTH void multiply_strips(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  Stage s = stage(p, scratch);
  stage_order<F, kBlock>(p, s);
  for (int64_t o = first; o < last; o += kPair) {
    const uint8_t* row[kPair];
    for (int r = 0; r < kPair; ++r)
      row[r] = static_cast<const uint8_t*>(p.weight) + (o + r < last ? o + r : o) * p.row_bytes;
    for (int r = 0; r < kPair; ++r) stage_row<F>(p, row, s, r);
    const FromFile<F, kBlock> file{row, s};
    if (p.tokens * p.planes == 1) {
      multiply_pair<F, kBlock>(p, file, s, o, last);
      continue;
    }
    const int lanes = p.steps() * kGroupLanes;
    for (int i = 0; i < lanes; ++i)
      for (int c = 0; c < kBlock / 32; ++c)
        store_bytes(s.cells + (i * (kBlock / 32) + c) * sizeof(Bytes), file.get(i, c));
    multiply_pair<F, kBlock>(p, FromCells<kBlock>{s}, s, o, last);
  }
}

}  // namespace
}  // namespace juno::cpu

#endif
