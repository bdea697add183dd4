// SPDX-License-Identifier: Apache-2.0
// A row of activations on its way to int8 (docs/numerics.md §2, §5): read, normed or gated, rounded; one
// block of threads a row. Where the integers go is the sink's business.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/gpu.h"
#include "base/math.h"
#include "quant/format.h"

namespace juno::gpu {

inline constexpr int kSlots = 256;  // partial sums of a norm

JUNO_GPU float activate(int act, float x) {
  return act == 0 ? silu(x) : act == 1 ? gelu_tanh(x) : gelu_erf(x);
}

// The halving tree over 256 sums, of which a lane of a warp has every 32nd; every lane has the result.
JUNO_GPU float slot_tree(float (&s)[8]) {
  JUNO_UNROLL
  for (int half = 4; half > 0; half /= 2) {
    JUNO_UNROLL
    for (int i = 0; i < half; ++i) s[i] = s[i] + s[i + half];
  }
  JUNO_UNROLL
  for (int mask = 16; mask > 0; mask /= 2) s[0] = s[0] + shuffle_xor(s[0], mask);
  return s[0];
}
// The same of sums in shared memory, in every warp.
JUNO_GPU float slot_tree(const float* slots) {
  float s[8];
  JUNO_UNROLL
  for (int i = 0; i < 8; ++i) s[i] = slots[i * kWarp + lane()];
  return slot_tree(s);
}

struct Normed {
  float mean = 0, r = 0;
};

// A row to shared memory, as many loads under way as there are threads for.
JUNO_GPU void stage_row(const float* x, int n, float* staged) {
  constexpr int kBatch = 4;
  if (n % 4 != 0) {
    JUNO_UNROLL_BY(1)
    for (int i = thread(); i < n; i += threads()) staged[i] = x[i];
    return;
  }
  JUNO_UNROLL_BY(1)
  for (int first = thread() * 4; first < n; first += threads() * 4 * kBatch) {
    Floats4 v[kBatch];
    JUNO_UNROLL
    for (int b = 0; b < kBatch; ++b)
      if (first + b * threads() * 4 < n)
        v[b] = *reinterpret_cast<const Floats4*>(x + first + b * threads() * 4);
    JUNO_UNROLL
    for (int b = 0; b < kBatch; ++b)
      if (first + b * threads() * 4 < n)
        *reinterpret_cast<Floats4*>(staged + first + b * threads() * 4) = v[b];
  }
}

// Sums of a row in shared memory by a whole block; `slots` are 256 floats of shared memory.
JUNO_GPU Normed norm_of_row(const float* x, int n, const NormWeights& w, float* slots) {
  const float count = static_cast<float>(n);
  Normed of;
  if (w.centred) {
    JUNO_UNROLL_BY(1)
    for (int slot = thread(); slot < kSlots; slot += threads()) {
      float sum = 0;
      JUNO_UNROLL_BY(1)
      for (int i = slot; i < n; i += kSlots) sum = sum + x[i];
      slots[slot] = sum;
    }
    barrier();
    of.mean = slot_tree(slots) / count;
    barrier();
  }
  JUNO_UNROLL_BY(1)
  for (int slot = thread(); slot < kSlots; slot += threads()) {
    float sum = 0;
    JUNO_UNROLL_BY(4)
    for (int i = slot; i < n; i += kSlots) {
      const float c = w.centred ? x[i] - of.mean : x[i];
      sum = fma(c, c, sum);
    }
    slots[slot] = sum;
  }
  barrier();
  of.r = 1.0f / __builtin_sqrtf(slot_tree(slots) / count + w.eps);
  barrier();
  return of;
}

JUNO_GPU float normed(const Normed& of, const NormWeights& w, float x, int i) {
  const float c = w.centred ? x - of.mean : x;
  const float y = (c * of.r) * w.weight[i];
  return w.bias ? y + w.bias[i] : y;
}

// Rounds four elements of each lane, whose neighbours hold the rest of the block of 32, 64 or 128. All lanes
// come. Elements from 4 lane on within the warp's 128; `rest`: what is left, the second row of int8x2.
struct Rounding {
  uint32_t q;  // four signed bytes
  uint32_t h;  // sums of the cell's halves, the same in its 8 lanes
  float d;
};
JUNO_GPU Rounding round_four(const float (&x)[4], int block) {
  uint32_t top = 0;
  JUNO_UNROLL
  for (int i = 0; i < 4; ++i) {
    const uint32_t size = bits_of(magnitude(x[i]));
    top = size > top ? size : top;
  }
  if (block == 4 * kWarp) {
    top = warp_max(top);
  } else {
    for (int mask = 1; mask < block / 4; mask *= 2) {
      const uint32_t other = shuffle_xor(top, mask);
      top = other > top ? other : top;
    }
  }
  const float a = float_of(top);
  const bool zero = a < 0x1p-100f;
  const float r = zero ? 0.0f : static_cast<float>(quant::kMaxQ) / a;
  Rounding y = {0, 0, zero ? 0.0f : a / static_cast<float>(quant::kMaxQ)};
  JUNO_UNROLL
  for (int i = 0; i < 4; ++i) y.q |= (static_cast<uint32_t>(rne_int(x[i] * r)) & 255u) << (8 * i);
  int sum = dot4(y.q, 0x01010101u, 0);
  sum += shuffle_xor(sum, 1);
  sum += shuffle_xor(sum, 2);
  const int other = shuffle_xor(sum, 4);
  const bool first = (lane() & 4) == 0;
  y.h = (static_cast<uint32_t>(first ? sum : other) & 0xffffu) | static_cast<uint32_t>(first ? other : sum)
                                                                     << 16;
  return y;
}
JUNO_GPU void take_rounded(float (&x)[4], const Rounding& y) {
  JUNO_UNROLL
  for (int i = 0; i < 4; ++i) x[i] = fma(-y.d, static_cast<float>(static_cast<int8_t>(y.q >> (8 * i))), x[i]);
}

// What of an input row is rounded.
struct RoundSource {
  const float *x, *up;  // [k]
  NormWeights norm;
  Source source;
  int act;
};
// The row as it will be rounded, in shared memory, but for its norm. Code is kept short and in loops: what
// every block runs once must not wait for its instructions.
JUNO_GPU Normed stage_source(const RoundSource& from, int k, float* slots, float* staged) {
  barrier();  // the row before may still be read
  if (from.source == Source::kGated) {
    JUNO_UNROLL_BY(1)
    for (int i = thread(); i < k; i += threads()) staged[i] = activate(from.act, from.x[i]) * from.up[i];
  } else {
    stage_row(from.x, k, staged);
  }
  barrier();
  return from.source == Source::kNorm ? norm_of_row(staged, k, from.norm, slots) : Normed{};
}

// Where rows of k elements go: rows first_row … + planes of a sink.
struct RoundRows {
  int k, block, planes, first_row;
};
template <class Sink>
JUNO_GPU void sink_four(float (&v)[4], int i, const RoundRows& rows, const Sink& sink) {
  JUNO_UNROLL_BY(1)
  for (int plane = 0; plane < rows.planes; ++plane) {
    const Rounding y = round_four(v, rows.block);
    if (i < rows.k) {
      sink.q(rows.first_row + plane, i, y.q);
      if (i % 32 == 0) sink.h(rows.first_row + plane, i, y.h);
      if ((i & (rows.block - 1)) == 0) sink.d(rows.first_row + plane, i, y.d);
    }
    if (plane + 1 < rows.planes) take_rounded(v, y);
  }
}

// sink.q(row, i, four bytes), sink.h(row, i, h), sink.d(row, i, d) of the elements from i on.
template <class Sink>
JUNO_GPU void round_row(const RoundSource& from, const Normed& of, const float* staged, const RoundRows& rows,
                        const Sink& sink) {
  JUNO_UNROLL_BY(2)
  for (int base = warp() * kWarp * 4; base < rows.k; base += threads() * 4) {
    const int i = base + lane() * 4;
    float v[4] = {};
    if (i < rows.k) {
      const Floats4 x = *reinterpret_cast<const Floats4*>(staged + i);
      JUNO_UNROLL
      for (int j = 0; j < 4; ++j)
        v[j] = from.source == Source::kNorm ? normed(of, from.norm, x.x[j], i + j) : x.x[j];
    }
    sink_four(v, i, rows, sink);
  }
}

// Rows of Rounded, dense.
struct GlobalSink {
  Rounded y;
  int k, block;
  JUNO_GPU void q(int row, int i, uint32_t four) const {
    reinterpret_cast<uint32_t*>(y.q)[(static_cast<int64_t>(row) * k + i) / 4] = four;
  }
  JUNO_GPU void h(int row, int i, uint32_t sums) const {
    y.h[static_cast<int64_t>(row) * (k / 32) + i / 32] = sums;
  }
  JUNO_GPU void d(int row, int i, float d) const {
    y.d[static_cast<int64_t>(row) * (k / block) + i / block] = d;
  }
};

}  // namespace juno::gpu
