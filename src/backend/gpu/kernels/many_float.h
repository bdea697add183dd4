// SPDX-License-Identifier: Apache-2.0
// Products of many tokens with float weights (docs/numerics.md §4): the sixteen accumulators of an element
// are those of sixteen lanes, so that each lane multiplies whole tiles in the order there is.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/float_shape.h"
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/matvec_float.h"
#include "quant/dot.h"

namespace juno::gpu {

// Where a thread stands in its block's tile.
struct FloatPlace {
  int residue;     // of K, modulo sixteen
  int token, row;  // the first of its tile's
};
JUNO_GPU FloatPlace float_place() {
  const int tile = thread() / FloatShape::kLanes, across = FloatShape::kTokens / FloatShape::kSide;
  return {thread() % FloatShape::kLanes, tile % across * FloatShape::kSide,
          tile / across * FloatShape::kSide};
}

// What a thread brings of each stage: eight threads side by side have every eighth element of a token or
// row, so that those of a warp store to as many banks.
template <class F>
struct FloatFetch {
  static constexpr int kTokensAtOnce = FloatShape::kThreads / 16, kRowsAtOnce = FloatShape::kThreads / 8;
  static_assert(kTokensAtOnce == FloatShape::kTokens && kRowsAtOnce == FloatShape::kRows);
  const float* x;              // of its token; null: there is none
  const typename F::Block* w;  // of its row, likewise
  int k;
  float of_x[2], of_w[4];

  JUNO_GPU void load(int first) {
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int at = first + thread() % 16 + 16 * i;
      of_x[i] = x && at < k ? x[at] : 0.0f;
    }
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int at = first + thread() % 8 + 8 * i;
      of_w[i] = w && at < k ? wide_value<F>(w[at]) : 0.0f;
    }
  }
  JUNO_GPU void store(float* stage) const {
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i)
      stage[(thread() % 16 + 16 * i) * FloatShape::kTokenPitch + thread() / 16] = of_x[i];
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i)
      stage[FloatShape::kDepth * FloatShape::kTokenPitch + (thread() % 8 + 8 * i) * FloatShape::kRowPitch +
            thread() / 8] = of_w[i];
  }
};

using FloatSums = float[FloatShape::kSide * FloatShape::kSide];  // [tokens, rows]

JUNO_GPU void multiply_floats(const float* stage, const FloatPlace& at, int left, FloatSums& acc) {
  JUNO_UNROLL
  for (int step = 0; step < FloatShape::kDepth; step += FloatShape::kLanes) {
    const int k = step + at.residue;
    if (k >= left) break;
    float x[8], w[8];
    load_eight_inputs(stage + k * FloatShape::kTokenPitch + at.token, x);
    load_eight_inputs(
        stage + FloatShape::kDepth * FloatShape::kTokenPitch + k * FloatShape::kRowPitch + at.row, w);
    JUNO_UNROLL
    for (int t = 0; t < 8; ++t) {
      JUNO_UNROLL
      for (int o = 0; o < 8; ++o) acc[t * 8 + o] = fma(w[o], x[t], acc[t * 8 + o]);
    }
  }
}

// The halving tree over the sixteen lanes, from those kMask apart on; each keeps the half of the sums that
// its bit says, in the end four: those of acc[4 * residue …].
template <int kMask = 8>
JUNO_GPU Floats4 halve_over_lanes(FloatSums& acc, int residue) {
  if constexpr (kMask == 0) {
    return {acc[0], acc[1], acc[2], acc[3]};
  } else {
    constexpr int kKept = 4 * kMask;
    const bool upper = (residue & kMask) != 0;
    JUNO_UNROLL
    for (int i = 0; i < kKept; ++i) {
      const float mine = upper ? acc[kKept + i] : acc[i], theirs = upper ? acc[i] : acc[kKept + i];
      acc[i] = mine + shuffle_xor(theirs, kMask);
    }
    return halve_over_lanes<kMask / 2>(acc, residue);
  }
}

// The neighbour tree over the groups, as they come.
struct FloatTree {
  Floats4 level[3], all;
  int done = 0;

  JUNO_GPU void add(Floats4 group) {
    bool open = true;  // `group` still meets a neighbour
    JUNO_UNROLL
    for (int l = 0; l < 3; ++l) {
      const bool second = (done >> l & 1) != 0;
      JUNO_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (open && second) group.x[i] = level[l].x[i] + group.x[i];
        if (open && !second) level[l].x[i] = group.x[i];
      }
      open = open && second;
    }
    all = group;
    ++done;
  }
};

// Grid: (tiles of tokens, tiles of all parts' rows).
template <class F>
JUNO_GPU void multiply_float(const FloatArgs& a) {
  trigger_dependents();
  int tile = block_y();
  MatvecPart part = a.parts[0];
  JUNO_UNROLL
  for (int i = 1; i < 3; ++i) {
    const int tiles = (part.weight.rows + FloatShape::kRows - 1) / FloatShape::kRows;
    if (i >= a.part_count || tile < tiles) break;
    tile -= tiles;
    part = a.parts[i];
  }
  const int first_token = block_x() * FloatShape::kTokens, first_row = tile * FloatShape::kRows;
  const int token = first_token + thread() / 16, row = first_row + thread() / 8;
  FloatFetch<F> fetch{token < a.tokens ? a.x + static_cast<int64_t>(token) * a.k : nullptr,
                      row < part.weight.rows ? reinterpret_cast<const typename F::Block*>(part.weight.data) +
                                                   static_cast<int64_t>(row) * a.k
                                             : nullptr,
                      a.k};
  wait_dependency();
  const FloatPlace at = float_place();
  const int blocks = (a.k + FloatShape::kDepth - 1) / FloatShape::kDepth;
  FloatSums acc = {};
  FloatTree tree;
  fetch.load(0);
  int edge = static_cast<int>(quant::group_begin(1, blocks));
  JUNO_UNROLL_BY(1)
  for (int block = 0; block <= blocks; ++block) {
    JUNO_UNROLL_BY(1)
    while (tree.done < 8 && block == edge) {
      tree.add(halve_over_lanes(acc, at.residue));
      JUNO_UNROLL
      for (float& sum : acc) sum = 0;
      edge = static_cast<int>(quant::group_begin(tree.done + 1, blocks));
    }
    if (block == blocks) break;
    float* stage = shared<float>() + block % 2 * FloatShape::kStage;
    fetch.store(stage);
    barrier();
    fetch.load((block + 1) * FloatShape::kDepth);
    multiply_floats(stage, at, a.k - block * FloatShape::kDepth, acc);
  }
  const int t = first_token + at.token + at.residue / 2, o = first_row + at.row + at.residue % 2 * 4;
  if (t >= a.tokens) return;
  JUNO_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (o + i >= part.weight.rows) break;
    float y = tree.all.x[i];
    const int64_t to = t * part.y_stride + o + i;
    if (part.bias) y = y + part.bias[o + i];
    if (a.residual) y = a.residual[to] + y;
    part.y[to] = y;
  }
}

#define JUNO_MANY_FLOAT_BODY(F) \
  JUNO_GPU void many_##F(const FloatArgs& a) { multiply_float<quant::F>(a); }
JUNO_MANY_FLOAT_BODY(F32)
JUNO_MANY_FLOAT_BODY(F16)
JUNO_MANY_FLOAT_BODY(BF16)
#undef JUNO_MANY_FLOAT_BODY

}  // namespace juno::gpu
