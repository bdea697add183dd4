// SPDX-License-Identifier: Apache-2.0
// Chunks of attention and how they are merged (docs/numerics.md §6): shared by decoding and prompts.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/gpu.h"
#include "base/math.h"

namespace juno::gpu {

// 2^n for n <= 0, 0 below 2^-100.
JUNO_GPU float power(int32_t n) { return n < -100 ? 0.0f : float_of(static_cast<uint32_t>(n + 127) << 23); }
// a - b without the undefined.
JUNO_GPU int32_t apart(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

// What one head's chunk comes to, beside o.
struct ChunkSums {
  float l;
  int32_t n;
};

// What the sums so far and those of the next chunk are multiplied with.
struct Weights2 {
  float keep, take;
  int32_t n;  // of both together
};
JUNO_GPU Weights2 merge_weights(int32_t all, int32_t next) {
  const int32_t n = all > next ? all : next;
  return {power(apart(all, n)), power(apart(next, n)), n};
}

// The slots of a chunk that a position sees.
struct ChunkSpan {
  int chunk, begin, end;
  bool first;  // where the merge begins
};
JUNO_GPU int first_seen(int position, int window) {
  return window != 0 && position - window + 1 > 0 ? position - window + 1 : 0;
}
JUNO_GPU ChunkSpan span_of(int chunk, int first, int position) {
  const int start = chunk * 64;
  return {chunk, first > start ? first - start : 0, position - start + 1 < 64 ? position - start + 1 : 64,
          start <= first};
}

// Query heads [first, first + count) of a row, which share one head of the cache.
struct HeadTile {
  int row, first, count;
};

// Lanes for the runs of one key: a power of two.
JUNO_GPU int lanes_of_key(int key_dim) {
  int lanes = 1;
  while (lanes * 8 < key_dim) lanes *= 2;
  return lanes;
}

JUNO_GPU float* part_of(const AttendArgs& a, int row, int head, int chunk) {
  return a.parts +
         ((static_cast<int64_t>(row) * a.heads + head) * a.max_chunks + chunk) * (a.places.value_dim + 2);
}

// by[c - first] for all chunks, by the first warp: the greatest n up to each is found by doubling.
JUNO_GPU void find_merge_weights(const AttendArgs& a, int row, int head, int first, int last, Weights2* by) {
  if (warp() != 0) return;
  const int dim = a.places.value_dim;
  int32_t before = static_cast<int32_t>(0x80000000u);  // the greatest of earlier rounds
  for (int base = first; base <= last; base += kWarp) {
    const int c = base + lane() <= last ? base + lane() : last;
    const auto n = static_cast<int32_t>(bits_of(part_of(a, row, head, c)[dim + 1]));
    int32_t top = n > before ? n : before;
    JUNO_UNROLL
    for (int step = 1; step < kWarp; step *= 2) {
      const int32_t left = shuffle(top, lane() >= step ? lane() - step : lane());
      top = left > top ? left : top;
    }
    const int32_t left = shuffle(top, lane() > 0 ? lane() - 1 : 0);
    const int32_t all = lane() > 0 ? left : before;
    if (base + lane() <= last) by[c - first] = {power(apart(all, top)), power(apart(n, top)), top};
    before = shuffle(top, kWarp - 1);
  }
}

}  // namespace juno::gpu
