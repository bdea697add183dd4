// SPDX-License-Identifier: Apache-2.0
// The activations of a matrix-vector product come to shared memory as records, by every block for itself.
#pragma once
#include "backend/gpu/kernels/matvec_out.h"
#include "backend/gpu/kernels/record.h"

namespace juno::gpu {

// The sum of squares of a row in global memory by slots, many loads under way.
JUNO_GPU Normed root_of_row(const float* x, int n, float eps, float* slots) {
  constexpr int kBatch = 16;
  JUNO_UNROLL_BY(1)
  for (int slot = thread(); slot < kSlots; slot += threads()) {
    float sum = 0;
    JUNO_UNROLL_BY(1)
    for (int first = slot; first < n; first += kSlots * kBatch) {
      float v[kBatch];
      JUNO_UNROLL
      for (int b = 0; b < kBatch; ++b) v[b] = first + b * kSlots < n ? x[first + b * kSlots] : 0.0f;
      JUNO_UNROLL
      for (int b = 0; b < kBatch; ++b)
        if (first + b * kSlots < n) sum = fma(v[b], v[b], sum);
    }
    slots[slot] = sum;
  }
  barrier();
  return {.r = 1.0f / __builtin_sqrtf(slot_tree(slots) / static_cast<float>(n) + eps)};
}

// Four elements of a lane, and their weights under a norm.
struct RowPiece {
  Floats4 x, w;
  JUNO_GPU void load(const float* row, const float* weight, int i, int k) {
    x = w = Floats4{};
    if (i < k) x = *reinterpret_cast<const Floats4*>(row + i);
    if (i < k && weight) w = *reinterpret_cast<const Floats4*>(weight + i);
  }
};

// One row, as it is or under a norm without mean and bias, from global memory to records at once. A short
// loop: what is run once waits for its instructions.
JUNO_GPU void gather_row(const MatvecArgs& a, const float* row, const Records& to) {
  const float* weight = a.source == Source::kNorm ? a.norm.weight : nullptr;
  constexpr int kAhead = 3;
  const int step = threads() * 4;
  RowPiece next[kAhead];
  JUNO_UNROLL
  for (int p = 0; p < kAhead; ++p) next[p].load(row, weight, thread() * 4 + p * step, a.k);
  Normed of;
  if (weight) of = root_of_row(row, a.k, a.norm.eps, shared<float>());
  JUNO_UNROLL_BY(1)
  for (int i = thread() * 4; i - lane() * 4 < a.k; i += step) {
    const RowPiece piece = next[0];
    JUNO_UNROLL
    for (int p = 1; p < kAhead; ++p) next[p - 1] = next[p];
    next[kAhead - 1].load(row, weight, i + kAhead * step, a.k);
    float v[4];
    JUNO_UNROLL
    for (int j = 0; j < 4; ++j) v[j] = weight ? (piece.x.x[j] * of.r) * piece.w.x[j] : piece.x.x[j];
    const Rounding y = round_four(v, a.block);
    if (i < a.k) {
      unsigned char* record = to.record(0, i >> to.shift);
      const int within = i & (a.block - 1);
      *reinterpret_cast<uint32_t*>(record + within) = y.q;
      if (within % 32 == 0) *reinterpret_cast<uint32_t*>(record + a.block + within / 8) = y.h;
      if (within == 0) *reinterpret_cast<float*>(record + a.block + a.block / 8) = y.d;
    }
  }
}

// The rows of activations as records, whatever they come from.
JUNO_GPU void gather_records(const MatvecArgs& a, int input) {
  const Records to(shared() + kRecordsAt, a.k, a.block);
  if (a.x.q) return copy_records(to, a.x, input * a.planes, a.tokens * a.planes);
  if (a.rounds_while_reading()) return gather_row(a, a.from + static_cast<int64_t>(input) * a.k, to);
  float* slots = shared<float>();
  float* staged = reinterpret_cast<float*>(to.at + a.tokens * a.planes * record_row_bytes(a.k, a.block));
  JUNO_UNROLL_BY(1)
  for (int t = 0; t < a.tokens; ++t) {
    const int64_t row = static_cast<int64_t>(input + t) * a.k;
    const RoundSource from{a.from + row, a.up ? a.up + row : nullptr, a.norm, a.source, a.from_act};
    const Normed of = stage_source(from, a.k, slots, staged);
    round_row(from, of, staged, {a.k, a.block, a.planes, t * a.planes}, to);
  }
}

}  // namespace juno::gpu
