// SPDX-License-Identifier: Apache-2.0
// A head of q or k on its way to attention, by one warp: normed where there is a norm (docs/numerics.md §5),
// then turned where there is a rope. Code is kept short: most of it runs once.
#pragma once
#include "backend/gpu/kernels/round.h"

namespace juno::gpu {

// Of elements of which each lane reads every 32nd: it has the slots that it adds up in slot_tree.
JUNO_GPU Normed norm_of_head(const float* x, int n, const NormWeights& w) {
  Normed of;
  JUNO_UNROLL_BY(1)
  for (int squares = w.centred ? 0 : 1; squares < 2; ++squares) {
    float s[8];
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) {
      s[i] = 0;
      JUNO_UNROLL_BY(1)
      for (int j = i * kWarp + lane(); j < n; j += kSlots) {
        const float c = w.centred && squares != 0 ? x[j] - of.mean : x[j];
        s[i] = squares != 0 ? fma(c, c, s[i]) : s[i] + c;
      }
    }
    const float mean = slot_tree(s) / static_cast<float>(n);
    if (squares != 0) of.r = 1.0f / __builtin_sqrtf(mean + w.eps);
    else of.mean = mean;
  }
  return of;
}

// Two elements that turn together, by the cosine and the sine of their angle.
JUNO_GPU void turn_pair(float& first, float& second, float c, float s) {
  const float x0 = first, x1 = second;
  first = fma(x0, c, -(x1 * s));
  second = fma(x0, s, x1 * c);
}

// To y in shared memory. `turn`: the row's angles, null where there is no rope.
JUNO_GPU void prepare_head(const float* x, int n, const NormWeights& norm, const RopeShape& rope,
                           const float* turn, float* y) {
  JUNO_UNROLL_BY(4)
  for (int i = lane(); i < n; i += kWarp) y[i] = x[i];
  if (norm.weight) {
    const Normed of = norm_of_head(y, n, norm);
    JUNO_UNROLL_BY(1)
    for (int i = lane(); i < n; i += kWarp) y[i] = normed(of, norm, y[i], i);
  }
  warp_barrier();
  if (!turn) return;
  JUNO_UNROLL_BY(2)
  for (int j = lane(); j < rope.pairs; j += kWarp)
    turn_pair(y[rope.interleaved ? 2 * j : j], y[rope.interleaved ? 2 * j + 1 : j + rope.pairs], turn[j],
              turn[rope.pairs + j]);
  warp_barrier();
}

// Of a row: head `at` of q, and behind these, of k.
JUNO_GPU void prepare_head_of(const PrepareArgs& a, int row, int at, int heads, float* y) {
  const bool is_q = at < heads;
  const float* const x = is_q ? a.q + row * a.q_stride : a.k + row * a.k_stride;
  prepare_head(x + static_cast<int64_t>(is_q ? at : at - heads) * a.places.key_dim, a.places.key_dim,
               is_q ? a.q_norm : a.k_norm, a.rope,
               a.table ? a.table + static_cast<int64_t>(row) * 2 * a.rope.pairs : nullptr, y);
}

// Where the cache has a row's own key or value.
JUNO_GPU uint16_t* cache_row(const Places& p, uint16_t* pages, int dim, int row, int kv_head) {
  const int position = p.positions[row];
  const int64_t page = p.pages[p.first_page[row] + position / 64];
  return pages + ((page * p.kv_heads + kv_head) * 64 + position % 64) * dim;
}

}  // namespace juno::gpu
