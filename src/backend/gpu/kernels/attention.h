// SPDX-License-Identifier: Apache-2.0
// Attention of rows that stand alone (docs/numerics.md §6), at the pace of the memory: a block has a chunk of
// one head of the cache and all query heads that share it. Chunks are merged from the left, by the block when
// it has them all, else by attend_merge.
#pragma once
#include "backend/gpu/kernels/attention_parts.h"
#include "backend/gpu/kernels/runs.h"

namespace juno::gpu {

// Scores: a run of eight elements a lane, so that a key is read by neighbours.
struct Keys {
  int key_dim, lanes;  // lanes: for one key, a power of two of at most 32
  const uint16_t* chunk;
};

JUNO_GPU void load_run(const uint16_t* key, int at, int dim, float (&k)[8]) {
  if (dim % 8 == 0) {
    const Quad32 x = at < dim ? load16(key + at) : Quad32{};
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) {
      k[2 * i] = half_to_float(static_cast<uint16_t>(x.x[i]));
      k[2 * i + 1] = half_to_float(static_cast<uint16_t>(x.x[i] >> 16));
    }
    return;
  }
  JUNO_UNROLL
  for (int i = 0; i < 8; ++i) k[i] = at + i < dim ? half_to_float(key[at + i]) : 0.0f;
}

// q: this lane's run of each of `count` heads. Leaves q·k in scores[head][slot]; lanes of keys that the mask
// forbids go through the motions.
template <int kHeads>
JUNO_GPU void score_chunk(const Keys& keys, const ChunkSpan& span, const float (&q)[kHeads][8], int count,
                          float* scores) {
  const int at_once = kWarp / keys.lanes, part = lane() % keys.lanes, at = part * 8;
  const int elements = keys.key_dim - at < 8 ? keys.key_dim - at : 8;  // of this run; none when negative
  for (int slot = warp() * at_once + lane() / keys.lanes; slot - lane() / keys.lanes < 64;
       slot += warps() * at_once) {
    const bool seen = slot >= span.begin && slot < span.end;
    float k[8] = {};
    if (seen) load_run(keys.chunk + slot * keys.key_dim, at, keys.key_dim, k);
    JUNO_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      float run = 0;
      JUNO_UNROLL
      for (int i = 0; i < 8; ++i)
        if (i < elements) run = fma(q[h][i], k[i], run);
      for (int mask = keys.lanes / 2; mask > 0; mask /= 2) run = run + shuffle_xor(run, mask);
      if (seen && h < count && part == h % keys.lanes) scores[h * 64 + slot] = run;
    }
  }
}

// A warp a head: scores become weights, in place.
JUNO_GPU void weigh_chunk(const AttendArgs& a, const ChunkSpan& span, int count, float* scores,
                          ChunkSums* sums) {
  for (int h = warp(); h < count; h += warps()) {
    float w[2];
    int32_t n[2];
    int32_t top = static_cast<int32_t>(0x80000000u);
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int slot = i * kWarp + lane();
      const bool seen = slot >= span.begin && slot < span.end;
      const float dot = seen ? scores[h * 64 + slot] : 0.0f;
      const float t = a.capped ? tanh(dot * a.before) * a.after : dot * a.after;
      n[i] = rne_int(t);
      w[i] = exp2_poly(t - rne(t));
      if (seen && n[i] > top) top = n[i];
    }
    top = warp_max(top);
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int slot = i * kWarp + lane();
      w[i] = slot >= span.begin && slot < span.end ? w[i] * power(apart(n[i], top)) : 0.0f;
      scores[h * 64 + slot] = w[i];
    }
    float l = w[0] + w[1];
    JUNO_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) l = l + shuffle_xor(l, mask);
    if (lane() == 0) sums[h] = {l, top};
  }
}

// Values: two elements of one head a thread, slots in order.
JUNO_GPU void copy_values(const uint16_t* from, int dim, const ChunkSpan& span, uint16_t* to) {
  if (dim % 8 == 0) {
    for (int i = thread() * 8; i < (span.end - span.begin) * dim; i += threads() * 8)
      copy_async16(to + span.begin * dim + i, from + span.begin * dim + i);
  } else {
    for (int i = span.begin * dim + thread(); i < span.end * dim; i += threads()) to[i] = from[i];
  }
  copies_commit();
}
JUNO_GPU void add_values(const uint16_t* values, int dim, const float* weights, const ChunkSpan& span, int d,
                         float (&o)[2]) {
  o[0] = o[1] = 0;
  if (dim % 2 != 0) {
    for (int s = span.begin; s < span.end; ++s)
      o[0] = fma(weights[s], half_to_float(values[s * dim + d]), o[0]);
    return;
  }
  JUNO_UNROLL_BY(8)
  for (int s = span.begin; s < span.end; ++s) {
    const uint32_t two = *reinterpret_cast<const uint32_t*>(values + s * dim + d);
    const float w = weights[s];
    o[0] = fma(w, half_to_float(static_cast<uint16_t>(two)), o[0]);
    o[1] = fma(w, half_to_float(static_cast<uint16_t>(two >> 16)), o[1]);
  }
}

// A block.
inline constexpr int kHeadTile = 4;  // query heads at a time
inline constexpr int kMine = 4;      // pairs of elements that one thread may have to keep

// Shared memory of attend: scores, sums, values.
struct AttendShared {
  float* scores;     // [kHeadTile, 64]
  ChunkSums* sums;   // [kHeadTile]
  uint16_t* values;  // [64, value_dim]
};
JUNO_BOTH constexpr int attend_shared_bytes(int value_dim) {
  return (kHeadTile * 64 + 64) * 4 + 64 * value_dim * 2;
}

struct Kept {
  ChunkSums sums[kMine];
  float o[kMine][2];
};

// Element pairs of the tile: index thread + i·threads.
JUNO_GPU void take_chunk(const AttendArgs& a, const AttendShared& mine, const ChunkSpan& span,
                         const HeadTile& tile, Kept& kept) {
  const int dim = a.places.value_dim, width = dim % 2 == 0 ? 2 : 1, pairs = dim / width;
  JUNO_UNROLL
  for (int i = 0; i < kMine; ++i) {
    const int at = thread() + i * threads();
    if (at >= tile.count * pairs) break;
    const int h = at / pairs, d = at % pairs * width;
    float o[2];
    add_values(mine.values, dim, mine.scores + h * 64, span, d, o);
    if (a.parts) {
      float* part = part_of(a, tile.row, tile.first + h, span.chunk);
      part[d] = o[0];
      if (width == 2) part[d + 1] = o[1];
      if (d == 0) part[dim] = mine.sums[h].l, part[dim + 1] = float_of(static_cast<uint32_t>(mine.sums[h].n));
    } else if (span.first) {
      kept.sums[i] = mine.sums[h];
      kept.o[i][0] = o[0], kept.o[i][1] = o[1];
    } else {
      const Weights2 by = merge_weights(kept.sums[i].n, mine.sums[h].n);
      kept.sums[i] = {kept.sums[i].l * by.keep + mine.sums[h].l * by.take, by.n};
      JUNO_UNROLL
      for (int j = 0; j < 2; ++j) kept.o[i][j] = kept.o[i][j] * by.keep + o[j] * by.take;
    }
  }
}

JUNO_GPU void write_tile(const AttendArgs& a, const HeadTile& tile, const Kept& kept) {
  const int dim = a.places.value_dim, width = dim % 2 == 0 ? 2 : 1, pairs = dim / width;
  JUNO_UNROLL
  for (int i = 0; i < kMine; ++i) {
    const int at = thread() + i * threads();
    if (at >= tile.count * pairs) break;
    float* y =
        a.y + (static_cast<int64_t>(tile.row) * a.heads + tile.first + at / pairs) * dim + at % pairs * width;
    y[0] = kept.o[i][0] / kept.sums[i].l;
    if (width == 2) y[1] = kept.o[i][1] / kept.sums[i].l;
  }
}

JUNO_GPU void attend_tile(const AttendArgs& a, const HeadTile& tile, const AttendShared& mine) {
  const Places& p = a.places;
  const int kv_head = tile.first / (a.heads / p.kv_heads), position = p.positions[tile.row];
  const int first = first_seen(position, a.window);
  Keys keys{p.key_dim, lanes_of_key(p.key_dim), nullptr};
  float q[kHeadTile][8];
  JUNO_UNROLL
  for (int h = 0; h < kHeadTile; ++h) {
    const float* from = a.q + (static_cast<int64_t>(tile.row) * a.heads + tile.first + h) * p.key_dim;
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int at = lane() % keys.lanes * 8 + i;
      q[h][i] = h < tile.count && at < p.key_dim ? from[at] : 0.0f;
    }
  }
  Kept kept;
  for (int c = first / 64 + block_x(); c <= position / 64; c += blocks_x()) {
    const ChunkSpan span = span_of(c, first, position);
    const int64_t page = p.pages[p.first_page[tile.row] + c], at = (page * p.kv_heads + kv_head) * 64;
    keys.chunk = p.keys + at * p.key_dim;
    copy_values(p.values + at * p.value_dim, p.value_dim, span, mine.values);
    score_chunk<kHeadTile>(keys, span, q, tile.count, mine.scores);
    barrier();
    weigh_chunk(a, span, tile.count, mine.scores, mine.sums);
    copies_wait<0>();
    barrier();
    take_chunk(a, mine, span, tile, kept);
    barrier();
  }
  if (!a.parts) write_tile(a, tile, kept);
}

// Grid: chunks, heads of the cache, rows.
JUNO_GPU void attend(const AttendArgs& a) {
  trigger_dependents();
  wait_dependency();
  const Places& p = a.places;
  const int row = block_z(), group = a.heads / p.kv_heads;
  if (p.positions[row] < 0 || (a.skip_runs != 0 && in_run(p, row, a.rows))) return;
  const AttendShared mine{shared<float>(), shared<ChunkSums>(kHeadTile * 64 * 4),
                          shared<uint16_t>((kHeadTile * 64 + 64) * 4)};
  for (int h = 0; h < group; h += kHeadTile)
    attend_tile(a, {row, block_y() * group + h, group - h < kHeadTile ? group - h : kHeadTile}, mine);
}

// Grid: heads, rows. A thread an element; the weights of all merges are found first.
JUNO_GPU void attend_merge(const AttendArgs& a) {
  trigger_dependents();
  wait_dependency();
  const int head = block_x(), row = block_y(), position = a.places.positions[row], dim = a.places.value_dim;
  if (position < 0 || (a.skip_runs != 0 && in_run(a.places, row, a.rows))) return;
  const int first = first_seen(position, a.window) / 64, last = position / 64;
  auto* by = shared<Weights2>();
  find_merge_weights(a, row, head, first, last, by);
  barrier();
  for (int d = thread(); d < dim; d += threads()) {
    const float* part = part_of(a, row, head, first);
    float l = part[dim], o = part[d];
    JUNO_UNROLL_BY(8)
    for (int c = first + 1; c <= last; ++c) {
      const float* next = part_of(a, row, head, c);
      const Weights2 w = by[c - first];
      l = l * w.keep + next[dim] * w.take;
      o = o * w.keep + next[d] * w.take;
    }
    a.y[(static_cast<int64_t>(row) * a.heads + head) * dim + d] = o / l;
  }
}

}  // namespace juno::gpu
