// SPDX-License-Identifier: Apache-2.0
// Attention of prompts (docs/numerics.md §6): a tile of query rows, all heads that share a head of the cache,
// meets chunk after chunk of it. Sums stay in registers, each thread's a patch, so that additions and not
// loads set the pace. Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/gpu.h"
#include "backend/gpu/kernels/prompt_shapes.h"
#include "backend/gpu/kernels/runs.h"
#include "base/half.h"
#include "base/math.h"

namespace juno::gpu {

struct alignas(8) Floats2 {
  float x[2];
};

// What `keep` says besides a power of two: the chunk is a row's first, or none of it is seen.
inline constexpr float kFirstChunk = -1, kUnseen = -2;

JUNO_GPU float power_of_2(int32_t n) {
  return n < -100 ? 0.0f : float_of(static_cast<uint32_t>(n + 127) << 23);
}

// The first position that `position` sees.
JUNO_GPU int window_begin(int position, int window) {
  return window != 0 && position - window + 1 > 0 ? position - window + 1 : 0;
}

// Rows of one run, with all heads that share a head of the cache: query row r is head r % group of row r /
// group.
struct PromptTile {
  int first_row, rows;  // of the batch
  int position, group, kv_head, first_page;

  JUNO_GPU PromptTile(const PromptArgs& a, int first, int end) : first_row(first), rows(1) {
    while (first + rows < end && goes_on(a.places, first + rows)) ++rows;
    position = a.places.positions[first];
    group = a.heads / a.places.kv_heads;
    kv_head = block_y();
    first_page = a.places.first_page[first];
  }
  JUNO_GPU bool has(int r) const { return r < rows * group; }
  JUNO_GPU int position_of(int r) const { return position + r / group; }
  // The slots [begin, end) of the chunk at `start` that query row r sees.
  JUNO_GPU void slots_of(const PromptArgs& a, int r, int start, int& begin, int& end) const {
    const int at = position_of(r), first = window_begin(at, a.window);
    begin = first > start ? first - start : 0;
    end = at - start + 1;
    if (end > 64) end = 64;
    if (!has(r) || end < 0) end = 0;
  }
  JUNO_GPU int64_t head_of(const PromptArgs& a, int r) const {
    return static_cast<int64_t>(first_row + r / group) * a.heads + kv_head * group + r % group;
  }
};

// Where the weight of a slot and a row lies; fours are shuffled so that lanes that store meet in few banks.
JUNO_GPU int weight_at(int slot, int row) { return slot * 64 + ((row / 4) ^ (slot / 4 & 7)) * 4 + row % 4; }

// q with rows side by side: [kDim, rows].
template <class Shape>
JUNO_GPU void load_queries(const PromptArgs& a, const PromptTile& tile, float* to) {
  const int dim = a.places.key_dim;
  for (int i = thread(); i < Shape::kDim * Shape::kRows; i += Shape::kThreads) {
    const int r = i % Shape::kRows, k = i / Shape::kRows;
    to[k * Shape::kPitch + r] = tile.has(r) && k < dim ? a.q[tile.head_of(a, r) * dim + k] : 0.0f;
  }
}

// Eight halves of a row of `dim`, 0 behind its end.
JUNO_GPU Quad32 load_halves(const uint16_t* row, int d, int dim) {
  Quad32 eight = {};
  if (dim % 8 == 0) {
    if (d < dim) eight = constant16(row + d);
  } else {
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i)
      if (d + i < dim) eight.x[i / 2] |= static_cast<uint32_t>(row[d + i]) << (i % 2 * 16);
  }
  return eight;
}
JUNO_GPU float widened(const uint32_t* halves, int i) {
  return half_to_float(static_cast<uint16_t>(halves[i / 2] >> (i % 2 * 16)));
}

// Where the element of a slot lies in a line of keys: fours are shuffled from run to run, for the same
// reason.
JUNO_GPU int slot_at(int slot, int run) { return ((slot / 4) ^ (run & 7)) * 4 + slot % 4; }

// A chunk of keys with slots side by side, [kDim, slots], and of values as they lie, [slots, kDim].
template <class Shape>
JUNO_GPU void load_chunk(const PromptArgs& a, const PromptTile& tile, int chunk, int slots, float* keys,
                         float* values) {
  const Places& at = a.places;
  const int64_t row =
      (static_cast<int64_t>(at.pages[tile.first_page + chunk]) * at.kv_heads + tile.kv_head) * Shape::kSlots;
  const uint16_t* k = at.keys + row * at.key_dim;
  const uint16_t* v = at.values + row * at.value_dim;
  // All loads first, so that they wait together.
  constexpr int kMine = Shape::kSlots * Shape::kRuns / Shape::kThreads;
  Quad32 key[kMine] = {}, value[kMine] = {};
  JUNO_UNROLL
  for (int m = 0; m < kMine; ++m) {
    const int i = thread() + m * Shape::kThreads, s = i / Shape::kRuns, run = i % Shape::kRuns;
    if (s >= slots) continue;
    key[m] = load_halves(k + s * at.key_dim, 8 * run, at.key_dim);
    value[m] = load_halves(v + s * at.value_dim, 8 * run, at.value_dim);
  }
  JUNO_UNROLL
  for (int m = 0; m < kMine; ++m) {
    const int i = thread() + m * Shape::kThreads, s = i / Shape::kRuns, run = i % Shape::kRuns;
    JUNO_UNROLL
    for (int j = 0; j < 8; ++j) keys[(8 * run + j) * Shape::kPitch + slot_at(s, run)] = widened(key[m].x, j);
    if constexpr (Shape::kHalfValues) {
      reinterpret_cast<Quad32*>(values)[i] = value[m];
    } else {
      JUNO_UNROLL
      for (int j = 0; j < 8; j += 4)
        reinterpret_cast<Floats4*>(values)[2 * i + j / 4] = {
            {widened(value[m].x, j), widened(value[m].x, j + 1), widened(value[m].x, j + 2),
             widened(value[m].x, j + 3)}};
    }
  }
}

// A thread's dots: kScoreRows neighbouring rows times the slots 4x .. 4x+3 and 32+4x .. 32+4x+3.
template <class Shape>
struct Dots {
  static constexpr int kRows = Shape::kScoreRows, kCount = kRows * 8;
  float sum[kCount];
  static constexpr int kNear = Shape::kDepth - Shape::kParked;  // levels in registers
  float level[kNear][kCount];

  JUNO_GPU static float& parked(int which, int i) {
    const int region = which == Shape::kDepth - 1 ? Shape::kWeights : Shape::kLevel;
    return shared<float>()[region + i * Shape::kThreads + thread()];
  }

  // One run of up to eight elements, in order.
  JUNO_GPU void add_run(const float* q, const float* k, int elements) {
    JUNO_UNROLL
    for (float& s : sum) s = 0;
    JUNO_UNROLL_BY(4)
    for (int e = 0; e < elements; ++e) {
      float row[kRows];
      JUNO_UNROLL
      for (int i = 0; i < kRows; i += 2) {
        const auto two = *reinterpret_cast<const Floats2*>(q + e * Shape::kPitch + i);
        row[i] = two.x[0];
        row[i + 1] = two.x[1];
      }
      const Floats4 low = *reinterpret_cast<const Floats4*>(k + e * Shape::kPitch);
      const Floats4 high = *reinterpret_cast<const Floats4*>(k + e * Shape::kPitch + 32);
      JUNO_UNROLL
      for (int i = 0; i < kRows; ++i) {
        JUNO_UNROLL
        for (int j = 0; j < 4; ++j) {
          sum[8 * i + j] = fma(row[i], low.x[j], sum[8 * i + j]);
          sum[8 * i + 4 + j] = fma(row[i], high.x[j], sum[8 * i + 4 + j]);
        }
      }
    }
  }
  // Leaf `leaf` of the tree, whose leaves are the runs with the bits of their numbers reversed.
  template <int kLevel>
  JUNO_GPU void fold(int leaf, int depth) {
    if constexpr (kLevel < Shape::kDepth) {
      if (kLevel >= depth) return;
      constexpr bool kIsNear = kLevel < kNear;
      float(&near)[kCount] = level[kIsNear ? kLevel : 0];
      if ((leaf >> kLevel & 1) == 0) {
        JUNO_UNROLL
        for (int i = 0; i < kCount; ++i) (kIsNear ? near[i] : parked(kLevel, i)) = sum[i];
      } else {
        JUNO_UNROLL
        for (int i = 0; i < kCount; ++i) sum[i] = (kIsNear ? near[i] : parked(kLevel, i)) + sum[i];
        fold<kLevel + 1>(leaf, depth);
      }
    }
  }
  // q: the first of the thread's rows; k: slot 0.
  JUNO_GPU void compute(const float* q, const float* k, int dim) {
    int depth = 0;
    while (8 << depth < dim) ++depth;
    for (int leaf = 0; leaf < 1 << depth; ++leaf) {
      int run = 0;
      JUNO_UNROLL
      for (int bit = 0; bit < Shape::kDepth; ++bit)
        if (bit < depth) run |= (leaf >> bit & 1) << (depth - 1 - bit);
      const int at = run * 8 * Shape::kPitch, slot = slot_at(lane() % 8 * 4, run);
      if (dim - run * 8 >= 8) add_run(q + at, k + at + slot, 8);
      else add_run(q + at, k + at + slot, dim - run * 8);
      fold<0>(leaf, depth);
    }
  }
};

// What a row's chunks so far come to, beside o.
struct RowState {
  int32_t n = 0;
  float l = 0;
  bool any = false;
};

// The scores of one row in eight lanes become weights, [slots, rows] in shared memory; the row's state moves
// on.
template <class Shape>
JUNO_GPU void weigh_row(const PromptArgs& a, const float (&dots)[8], int begin, int end, int r,
                        RowState& state) {
  float* const to = shared<float>() + Shape::kWeights;
  const int x = lane() % 8;
  int32_t n[8], top = INT32_MIN;
  float w[8];
  JUNO_UNROLL
  for (int j = 0; j < 8; ++j) {
    const int s = j / 4 * 32 + 4 * x + j % 4;
    const float t = Shape::kCapped ? tanh(dots[j] * a.before) * a.after : dots[j] * a.after;
    n[j] = rne_int(t);
    w[j] = exp2_poly(t - rne(t));
    if (s >= begin && s < end) top = n[j] > top ? n[j] : top;
  }
  JUNO_UNROLL
  for (int mask = 1; mask < 8; mask *= 2) {
    const int32_t other = shuffle_xor(top, mask);
    top = other > top ? other : top;
  }
  JUNO_UNROLL
  for (int j = 0; j < 8; ++j) {
    const int s = j / 4 * 32 + 4 * x + j % 4;
    const auto below = static_cast<int32_t>(static_cast<uint32_t>(n[j]) - static_cast<uint32_t>(top));
    w[j] = s >= begin && s < end ? w[j] * power_of_2(below) : 0.0f;
    to[weight_at(s, r)] = w[j];
  }
  // The halving tree over 64 slots: 32, then the lanes' 16, 8 and 4, then 2 and 1.
  float tree[4];
  JUNO_UNROLL
  for (int j = 0; j < 4; ++j) tree[j] = w[j] + w[4 + j];
  JUNO_UNROLL
  for (int mask = 4; mask > 0; mask /= 2) JUNO_UNROLL
  for (int j = 0; j < 4; ++j) tree[j] = tree[j] + shuffle_xor(tree[j], mask);
  const float l = (tree[0] + tree[2]) + (tree[1] + tree[3]);
  float keep = kUnseen, take = 0;
  if (begin < end) {
    if (!state.any) {
      state = {top, l, true};
      keep = kFirstChunk;
    } else {
      const int32_t both = state.n > top ? state.n : top;
      keep = power_of_2(static_cast<int32_t>(static_cast<uint32_t>(state.n) - static_cast<uint32_t>(both)));
      take = power_of_2(static_cast<int32_t>(static_cast<uint32_t>(top) - static_cast<uint32_t>(both)));
      state = {both, state.l * keep + l * take, true};
    }
  }
  if (x == 0) {
    shared<float>()[Shape::kKeep + r] = keep;
    shared<float>()[Shape::kTake + r] = take;
  }
}

// A thread's outputs: kValueRows neighbouring rows, columns in fours kDim / ... apart.
template <class Shape>
struct PromptOutputs {
  static constexpr int kRows = Shape::kValueRows, kColumns = Shape::kValueColumns;
  static constexpr int kFours = kColumns / 4;
  float all[kRows][kColumns] = {};

  JUNO_GPU static int column(int j) { return j / 4 * 64 + lane() % 16 * 4 + j % 4; }

  JUNO_GPU static Floats4 values_at(const float* values, int i) {
    if constexpr (!Shape::kHalfValues) return *reinterpret_cast<const Floats4*>(values + i);
    const auto four = *reinterpret_cast<const Pair32*>(reinterpret_cast<const uint16_t*>(values) + i);
    return {{widened(four.x, 0), widened(four.x, 1), widened(four.x, 2), widened(four.x, 3)}};
  }

  // One chunk, in order of slots; with kEdge rows differ in the slots they see.
  template <bool kEdge>
  JUNO_GPU void add_chunk(const PromptArgs& a, const PromptTile& tile, int start, int begin, int end,
                          int r0) {
    const float* base = shared<float>();
    float sum[kRows][kColumns] = {};
    int low[kRows], high[kRows];
    JUNO_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const int position = tile.position_of(r0 + i);
      low[i] = window_begin(position, a.window) - start;
      high[i] = position - start;
    }
    JUNO_UNROLL_BY(2)
    for (int s = begin; s < end; ++s) {
      float w[kRows];
      JUNO_UNROLL
      for (int i = 0; i < kRows; i += 4) {
        const Floats4 four = *reinterpret_cast<const Floats4*>(base + Shape::kWeights + weight_at(s, r0 + i));
        JUNO_UNROLL
        for (int j = 0; j < 4; ++j) w[i + j] = four.x[j];
      }
      JUNO_UNROLL
      for (int c = 0; c < kFours; ++c) {
        const Floats4 v = values_at(base + Shape::kV, s * Shape::kDim + column(4 * c));
        JUNO_UNROLL
        for (int i = 0; i < kRows; ++i) {
          if (kEdge && (s < low[i] || s > high[i])) continue;
          JUNO_UNROLL
          for (int j = 0; j < 4; ++j) sum[i][4 * c + j] = fma(w[i], v.x[j], sum[i][4 * c + j]);
        }
      }
    }
    JUNO_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float keep = base[Shape::kKeep + r0 + i], take = base[Shape::kTake + r0 + i];
      if (keep == kUnseen) continue;
      JUNO_UNROLL
      for (int j = 0; j < kColumns; ++j)
        all[i][j] = keep == kFirstChunk ? sum[i][j] : all[i][j] * keep + sum[i][j] * take;
    }
  }
  JUNO_GPU void store(const PromptArgs& a, const PromptTile& tile, int r0) const {
    JUNO_UNROLL
    for (int i = 0; i < kRows; ++i) {
      if (!tile.has(r0 + i)) continue;
      const float l = shared<float>()[Shape::kTotal + r0 + i];
      float* y = a.y + tile.head_of(a, r0 + i) * a.places.value_dim;
      JUNO_UNROLL
      for (int j = 0; j < kColumns; ++j)
        if (column(j) < a.places.value_dim) y[column(j)] = all[i][j] / l;
    }
  }
};

template <class Shape>
JUNO_GPU void attend_tile(const PromptArgs& a, const PromptTile& tile) {
  float* const memory = shared<float>();
  load_queries<Shape>(a, tile, memory + Shape::kQ);
  constexpr int kScoreRows = Shape::kScoreRows;
  const int score_row = (warp() * 4 + lane() / 8) * kScoreRows, value_row = thread() / 16 * Shape::kValueRows;
  RowState states[kScoreRows];
  PromptOutputs<Shape> outputs;
  const int last = tile.position + tile.rows - 1, first = window_begin(tile.position, a.window);
  for (int chunk = first / Shape::kSlots; chunk <= last / Shape::kSlots; ++chunk) {
    const int start = chunk * Shape::kSlots;
    const int slots = last - start + 1 < Shape::kSlots ? last - start + 1 : Shape::kSlots;
    const bool whole = start + Shape::kSlots - 1 <= tile.position && window_begin(last, a.window) <= start;
    barrier();
    load_chunk<Shape>(a, tile, chunk, slots, memory + Shape::kK, memory + Shape::kV);
    barrier();
    {
      Dots<Shape> dots;
      dots.compute(memory + Shape::kQ + score_row, memory + Shape::kK, a.places.key_dim);
      barrier();
      JUNO_UNROLL
      for (int i = 0; i < kScoreRows; ++i) {
        float row[8];
        JUNO_UNROLL
        for (int j = 0; j < 8; ++j) row[j] = dots.sum[8 * i + j];
        int seen = 0, end = Shape::kSlots;
        if (!whole) tile.slots_of(a, score_row + i, start, seen, end);
        weigh_row<Shape>(a, row, seen, end, score_row + i, states[i]);
      }
    }
    barrier();
    const int begin = first - start > 0 ? first - start : 0;
    if (whole) outputs.template add_chunk<false>(a, tile, start, 0, Shape::kSlots, value_row);
    else outputs.template add_chunk<true>(a, tile, start, begin, slots, value_row);
  }
  if (lane() % 8 == 0) {
    JUNO_UNROLL
    for (int i = 0; i < kScoreRows; ++i) memory[Shape::kTotal + score_row + i] = states[i].l;
  }
  barrier();
  outputs.store(a, tile, value_row);
}

// Grid: (tiles of rows, heads of the cache). Later rows see more, so they begin first.
template <class Shape>
JUNO_GPU void attend_prompt(const PromptArgs& a) {
  wait_dependency();
  const int share = Shape::kRows * a.places.kv_heads / a.heads;
  const int begin = (blocks_x() - 1 - block_x()) * share;
  const int end = begin + share < a.rows ? begin + share : a.rows;
  for (int row = begin; row < end;) {
    if (!in_run(a.places, row, a.rows)) {
      ++row;
      continue;
    }
    const PromptTile tile(a, row, end);
    attend_tile<Shape>(a, tile);
    row += tile.rows;
  }
}

}  // namespace juno::gpu
