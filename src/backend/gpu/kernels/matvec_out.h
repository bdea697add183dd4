// SPDX-License-Identifier: Apache-2.0
// Where the sums of a matrix-vector product go: the tree over the groups, bias, residual, gate.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/round.h"

namespace juno::gpu {

// Bytes of shared memory before the activations: the sums of a norm.
inline constexpr int kRecordsAt = 1024;

// What a warp has to do for one part: the strips first, first + stride … below `strips`. Under kGated each is
// taken twice, of the gate and of the up matrix. Passed by value, in registers.
struct Job {
  int part, first, stride, strips;
  int pair, input, expert;  // of a mixture: the first pair and input, and the expert
  JUNO_GPU int count() const { return first < strips ? (strips - first + stride - 1) / stride : 0; }
};

// A lane's result: the row of the weight, which of the eight groups it is (all have the sum), and under
// kGated 0 for the gate, 1 for the up matrix.
struct Place {
  int row, group, half;
};

// The neighbour tree over eight groups, whose lanes are `apart` lanes apart. All lanes get the sum.
JUNO_GPU float group_tree(float acc, int apart) {
  acc = acc + shuffle_xor(acc, apart);
  acc = acc + shuffle_xor(acc, 2 * apart);
  return acc + shuffle_xor(acc, 4 * apart);
}

// What the product of one row of activations is added to; asked for before the product is known.
JUNO_GPU float residual_of(const MatvecArgs& a, const Job& job, int row) {
  const MatvecPart& p = a.parts[job.part];
  if (a.epilogue != Epilogue::kAdd || row >= p.weight.rows) return 0;
  return a.residual[static_cast<int64_t>(job.pair) * p.y_stride + row];
}

// Group g of the lanes writes token g. `kept` holds the gate's sum until that of the up matrix is there, and
// with one row of activations residual_of().
template <int kRows>
JUNO_GPU void finish(const MatvecArgs& a, const Job& job, const Place& at, const float (&acc)[kRows],
                     float& kept) {
  const MatvecPart& p = a.parts[job.part + at.half];
  float y = acc[0];
  if constexpr (kRows > 1) {
    JUNO_UNROLL
    for (int t = 0; t < kRows; ++t) {
      if (a.planes == 1 && at.group == t) y = acc[t];
      if (a.planes == 2 && t % 2 == 0 && at.group == t / 2) y = acc[t] + acc[t + 1];
    }
  }
  if (at.group < 0 || at.group >= a.tokens || at.row >= p.weight.rows) return;
  if (p.bias) y = y + p.bias[at.row];
  const MatvecPart& to = a.parts[job.part];
  const int64_t i = static_cast<int64_t>(job.pair + at.group) * to.y_stride + at.row;
  if (a.epilogue == Epilogue::kGated) {
    if (at.half == 0) {
      kept = y;
      return;
    }
    y = activate(a.act, kept) * y;
  }
  if (a.epilogue == Epilogue::kAdd) y = (kRows == 1 ? kept : a.residual[i]) + y;
  to.y[i] = y;
}

}  // namespace juno::gpu
