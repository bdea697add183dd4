// SPDX-License-Identifier: Apache-2.0
// Matrix-vector products with float weights (docs/numerics.md §4). Rows lie as in the file. Half a warp has a
// row: two lanes a group, each eight of its sixteen accumulators.
#pragma once
#include "backend/gpu/kernels/layout.h"
#include "backend/gpu/kernels/matvec_out.h"
#include "quant/dot.h"

namespace juno::gpu {

template <class F>
JUNO_GPU float wide_value(const typename F::Block& b) {
  return F::value(b, 0);
}
template <>
JUNO_GPU float wide_value<quant::F16>(const quant::F16::Block& b) {
  return half_to_float(b.x);
}

// Eight weights from `from`, which is aligned to 16 bytes.
template <class F>
JUNO_GPU void load_eight(const typename F::Block* from, float (&w)[8]) {
  constexpr int kPieces = static_cast<int>(sizeof(typename F::Block)) / 2;
  JUNO_UNROLL
  for (int p = 0; p < kPieces; ++p) {
    const Quad32 piece = stream16(reinterpret_cast<const uint8_t*>(from) + 16 * p);
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) {
      if constexpr (kPieces == 2) {
        w[4 * p + i] = float_of(piece.x[i]);
      } else {
        typename F::Block b;
        b.x = static_cast<uint16_t>(piece.x[i]);
        w[2 * i] = wide_value<F>(b);
        b.x = static_cast<uint16_t>(piece.x[i] >> 16);
        w[2 * i + 1] = wide_value<F>(b);
      }
    }
  }
}
JUNO_GPU void load_eight_inputs(const float* from, float (&x)[8]) {
  JUNO_UNROLL
  for (int p = 0; p < 2; ++p) {
    const Floats4 piece = reinterpret_cast<const Floats4*>(from)[p];
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) x[4 * p + i] = piece.x[i];
  }
}

// Elements of a lane's group, eight of each sixteen.
struct Span {
  int begin, end, first;
};

struct Inputs {
  const float* x;  // [tokens, k]
  int k, tokens;
  // Rows past the batch are the last one again; their results are not stored.
  JUNO_GPU const float* row(int t) const { return x + static_cast<int64_t>(t < tokens ? t : tokens - 1) * k; }
};

// w points at the row of the weight.
template <class F, int kRows>
JUNO_GPU void float_sums(const typename F::Block* w, const Inputs& in, const Span& s,
                         float (&acc)[kRows][8]) {
  constexpr int kAhead = kRows <= 2 ? 4 : 2;
  if (in.k % 16 != 0) {  // rows are not aligned
    for (int i = s.begin; i < s.end; ++i) {
      JUNO_UNROLL
      for (int j = 0; j < 8; ++j)
        if (i % 16 == s.first + j)
          for (int t = 0; t < kRows; ++t) acc[t][j] = fma(quant::value<F>(w[i], 0), in.row(t)[i], acc[t][j]);
    }
    return;
  }
  for (int at = s.begin; at < s.end; at += 16 * kAhead) {
    float v[kAhead][8];
    JUNO_UNROLL
    for (int b = 0; b < kAhead; ++b)
      load_eight<F>(w + (at + 16 * b < s.end ? at + 16 * b : at) + s.first, v[b]);
    JUNO_UNROLL
    for (int b = 0; b < kAhead; ++b) {
      if (at + 16 * b >= s.end) break;
      JUNO_UNROLL
      for (int t = 0; t < kRows; ++t) {
        float x[8];
        load_eight_inputs(in.row(t) + at + 16 * b + s.first, x);
        JUNO_UNROLL
        for (int j = 0; j < 8; ++j) acc[t][j] = fma(v[b][j], x[j], acc[t][j]);
      }
    }
  }
}

template <class F, int kRows>
JUNO_GPU void float_strips(const MatvecArgs& a, const Job job) {
  const int twice = a.epilogue == Epilogue::kGated ? 2 : 1;
  const int group = lane() / 2 % 8, half = lane() / 16, blocks = (a.k + 31) / 32;
  const int end = static_cast<int>(quant::group_begin(group + 1, blocks)) * 32;
  const Span span{static_cast<int>(quant::group_begin(group, blocks)) * 32, end < a.k ? end : a.k,
                  lane() % 2 * 8};
  for (int strip = job.first; strip < job.strips; strip += job.stride) {
    for (int pass = 0; pass < 2; ++pass) {
      float kept = residual_of(a, job, strip * 4 + pass * 2 + half);
      for (int of = 0; of < twice; ++of) {
        const Weight& w = a.parts[job.part + of].weight;
        const int row = strip * 4 + pass * 2 + half;
        const auto* matrix = reinterpret_cast<const typename F::Block*>(
            w.data + static_cast<uint64_t>(job.expert) * w.plane_bytes);
        float acc[kRows][8] = {}, sums[kRows];
        const Inputs in{a.from + static_cast<int64_t>(job.input) * a.k, a.k, a.tokens};
        float_sums<F, kRows>(matrix + static_cast<int64_t>(row < w.rows ? row : w.rows - 1) * a.k, in, span,
                             acc);
        JUNO_UNROLL
        for (int t = 0; t < kRows; ++t) {
          JUNO_UNROLL
          for (int j = 0; j < 8; ++j) acc[t][j] = acc[t][j] + shuffle_xor(acc[t][j], 1);
          sums[t] = group_tree(quant::halving_tree(acc[t], 8), 2);
        }
        finish(a, job, Place{row, lane() % 2 == 0 ? group : -1, of}, sums, kept);
      }
    }
  }
}

}  // namespace juno::gpu
