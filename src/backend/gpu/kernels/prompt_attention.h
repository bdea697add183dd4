// SPDX-License-Identifier: Apache-2.0
// Attention of prompts (docs/numerics.md §6): a tile of query rows, all heads that share a head of the cache,
// meets chunk after chunk of it. Additions and not loads set the pace: a thread has 8 rows and 8 slots of the
// scores, and of the output 8 rows and 16 columns. Two groups of warps take chunks in turn, so that one adds
// up while the other waits. Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/gpu.h"
#include "backend/gpu/kernels/prompt_shapes.h"
#include "backend/gpu/kernels/runs.h"
#include "backend/gpu/kernels/tiles.h"
#include "base/half.h"
#include "base/math.h"

namespace juno::gpu {

JUNO_GPU float power_of_2(int32_t n) {
  return n < -100 ? 0.0f : float_of(static_cast<uint32_t>(n + 127) << 23);
}
JUNO_GPU int32_t distance(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
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
    kv_head = block_x();
    first_page = a.places.first_page[first];
  }
  JUNO_GPU bool has(int r) const { return r < rows * group; }
  JUNO_GPU int position_of(int r) const { return position + r / group; }
  JUNO_GPU int last() const { return position + rows - 1; }
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

// What a row's chunks so far come to, beside o. kNothing: no chunk yet.
struct RowState {
  int32_t n;
  float l;
};
inline constexpr float kNothing = -1;

JUNO_GPU float widened(const uint32_t* halves, int i) {
  return half_to_float(static_cast<uint16_t>(halves[i / 2] >> (i % 2 * 16)));
}

// One group's share of a tile.
template <class Shape>
class PromptGroup {
 public:
  JUNO_GPU PromptGroup(const PromptArgs& a, const PromptTile& tile)
      : a_(a),
        tile_(tile),
        group_(thread() / Shape::kTeam),
        first_row_(warp() % Shape::kWarps * 32 + lane() / 8 * 8),
        memory_(shared<unsigned char>() + Shape::kGroups + group_ * Shape::kGroupBytes) {}

  JUNO_GPU int64_t page_of(int chunk) const { return a_.places.pages[tile_.first_page + chunk]; }
  JUNO_GPU void load_keys(int64_t page);
  // The chunk's share of the rows' outputs; `turn` counts chunks of the block, `next` is the group's next
  // chunk.
  JUNO_GPU void attend(int chunk, int next, int turn, bool last);

 private:
  static constexpr int kFours = Shape::kColumns / 32;  // of a row's columns

  template <class T>
  JUNO_GPU T* at(int offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  JUNO_GPU float* weights() const {
    return at<float>(Shape::kWeights) + warp() % Shape::kWarps * Shape::kSlots * 32;
  }
  // Where a level of the tree waits, 64 floats a thread: among the weights, which are not there yet, or the
  // values.
  JUNO_GPU Floats4* parked(int level) const {
    float* to = level == Shape::kParks - 1
                    ? weights()
                    : at<float>(Shape::kV) + (level * Shape::kWarps + warp() % Shape::kWarps) * 2048;
    return reinterpret_cast<Floats4*>(to) + lane();
  }
  template <bool kFresh>
  JUNO_GPU void add_run(int run, float (&sum)[8][8]) const;
  JUNO_GPU void fold(int four, float (&sum)[8][8]) const;
  JUNO_GPU void compute_dots(float (&sum)[8][8]) const;
  template <bool kEdge>
  JUNO_GPU void weigh(int start, float (&x)[8][8]);
  JUNO_GPU void store_weights(const float (&w)[8][8]) const;
  static constexpr int kPieces = Shape::kSlots * Shape::kColumns / 8 / Shape::kTeam;  // of a thread
  JUNO_GPU void load_values(int64_t page, int column, Quad32 (&to)[kPieces]) const;
  JUNO_GPU void store_values(const Quad32 (&from)[kPieces]) const;
  struct Slot {
    float weight[8], value[4 * kFours];
  };
  JUNO_GPU void load_slot(int s, Slot& to) const;
  template <bool kEdge>
  JUNO_GPU void add_values(int start, int begin, int end, float (&sum)[8][4 * kFours]) const;
  JUNO_GPU void advance(int turn);
  JUNO_GPU void merge(int column, const float (&sum)[8][4 * kFours]) const;
  JUNO_GPU void finish() const;
  // This thread's columns of one of its rows; null where there is no row.
  JUNO_GPU Floats4* output(int i) const {
    const int head = shared<int32_t>(Shape::kHeads)[first_row_ + i];
    if (head < 0) return nullptr;
    return reinterpret_cast<Floats4*>(a_.y + static_cast<int64_t>(head) * a_.places.value_dim) + lane() % 8;
  }
  JUNO_GPU bool has_column(int column) const { return column + lane() % 8 * 4 < a_.places.value_dim; }

  const PromptArgs& a_;
  const PromptTile& tile_;
  const int group_, first_row_;  // of this thread's 8
  unsigned char* const memory_;
  int32_t top_[8];
  float l_[8];
  float keep_[8], take_[8];
  bool begins_[8];  // with this chunk
};

// Pieces of 8 halves are shuffled from slot to slot, so that the same run of 8 slots lies in all banks.
template <class Shape>
JUNO_GPU void PromptGroup<Shape>::load_keys(int64_t page) {
  const int dim = a_.places.key_dim;
  const uint16_t* const from =
      a_.places.keys + (page * a_.places.kv_heads + tile_.kv_head) * Shape::kSlots * dim;
  JUNO_UNROLL
  for (int m = 0; m < Shape::kSlots * Shape::kRuns / Shape::kTeam; ++m) {
    const int i = thread() % Shape::kTeam + m * Shape::kTeam, slot = i / Shape::kRuns, run = i % Shape::kRuns;
    if (run * 8 < dim)
      copy_async16(at<uint16_t>(Shape::kK) + slot * Shape::kDim + (run ^ (slot & 7)) * 8,
                   from + slot * dim + run * 8);
  }
  copies_commit();
}

// The sums of one run for 8 rows and the slots lane % 8 + 8 j.
template <class Shape>
template <bool kFresh>
JUNO_GPU void PromptGroup<Shape>::add_run(int run, float (&sum)[8][8]) const {
  const float* const from = shared<float>() + first_row_ * Shape::kDim + (run ^ (lane() / 8)) * 8;
  float q[8][8];
  JUNO_UNROLL
  for (int i = 0; i < 8; ++i) {
    JUNO_UNROLL
    for (int h = 0; h < 8; h += 4) {
      const Floats4 four = *reinterpret_cast<const Floats4*>(from + i * Shape::kDim + h);
      JUNO_UNROLL
      for (int e = 0; e < 4; ++e) q[i][h + e] = four.x[e];
    }
  }
  const int x = lane() % 8;
  const uint16_t* const keys = at<uint16_t>(Shape::kK) + x * Shape::kDim + (run ^ x) * 8;
  JUNO_UNROLL
  for (int j = 0; j < 8; ++j) {
    const Quad32 halves = *reinterpret_cast<const Quad32*>(keys + j * 8 * Shape::kDim);
    float dot[8] = {};
    JUNO_UNROLL
    for (int e = 0; e < 8; ++e) {
      const float k = widened(halves.x, e);
      JUNO_UNROLL
      for (int i = 0; i < 8; ++i) dot[i] = fma(q[i][e], k, dot[i]);
    }
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) sum[i][j] = kFresh ? dot[i] : sum[i][j] + dot[i];
  }
}

// The other levels: leaves are the fours with the bits of their numbers reversed.
template <class Shape>
JUNO_GPU void PromptGroup<Shape>::fold(int four, float (&sum)[8][8]) const {
  int level = 0;
  JUNO_UNROLL_BY(1)
  for (; four >> level & 1; ++level) {
    const Floats4* const from = parked(level);
    JUNO_UNROLL
    for (int i = 0; i < 16; ++i) {
      const Floats4 x = from[i * kWarp];
      JUNO_UNROLL
      for (int e = 0; e < 4; ++e) sum[i / 2][i % 2 * 4 + e] = x.x[e] + sum[i / 2][i % 2 * 4 + e];
    }
  }
  if (four + 1 == Shape::kRuns / 4) return;
  Floats4* const to = parked(level);
  JUNO_UNROLL
  for (int i = 0; i < 16; ++i) {
    const float* const x = &sum[i / 2][i % 2 * 4];
    to[i * kWarp] = {{x[0], x[1], x[2], x[3]}};
  }
}

// Leaf i of the tree is the run with the bits of i reversed; runs behind the end of a head are +0. Two leaves
// are a loop's text: more do not fit the cache of instructions.
template <class Shape>
JUNO_GPU void PromptGroup<Shape>::compute_dots(float (&sum)[8][8]) const {
  float other[8][8];
  JUNO_UNROLL_BY(1)
  for (int leaf = 0; leaf < Shape::kRuns; leaf += 2) {
    int run = 0;
    JUNO_UNROLL
    for (int bit = 1; bit < Shape::kRuns; bit *= 2)
      if (leaf & bit) run += Shape::kRuns / 2 / bit;
    if (run * 8 < a_.places.key_dim) {
      add_run<true>(run, sum);
    } else {
      JUNO_UNROLL
      for (int i = 0; i < 64; ++i) sum[i / 8][i % 8] = 0;
    }
    if ((run + Shape::kRuns / 2) * 8 < a_.places.key_dim) add_run<false>(run + Shape::kRuns / 2, sum);
    if (leaf % 4 == 0) {
      JUNO_UNROLL
      for (int i = 0; i < 64; ++i) other[i / 8][i % 8] = sum[i / 8][i % 8];
    } else {
      JUNO_UNROLL
      for (int i = 0; i < 64; ++i) sum[i / 8][i % 8] = other[i / 8][i % 8] + sum[i / 8][i % 8];
      fold(leaf / 4, sum);
    }
  }
}

// Scores become weights, in place; the rows' top and l are found.
template <class Shape>
template <bool kEdge>
JUNO_GPU void PromptGroup<Shape>::weigh(int start, float (&x)[8][8]) {
  JUNO_UNROLL
  for (int i = 0; i < 8; ++i) {
    int begin = 0, end = 64;
    if (kEdge) tile_.slots_of(a_, first_row_ + i, start, begin, end);
    int32_t n[8], top = INT32_MIN;
    JUNO_UNROLL
    for (int j = 0; j < 8; ++j) {
      const int s = 8 * j + lane() % 8;
      const float t = Shape::kCapped ? tanh(x[i][j] * a_.before) * a_.after : x[i][j] * a_.after;
      n[j] = rne_int(t);
      x[i][j] = exp2_poly(t - rne(t));
      if (!kEdge || (s >= begin && s < end)) top = n[j] > top ? n[j] : top;
    }
    JUNO_UNROLL
    for (int mask = 1; mask < 8; mask *= 2) {
      const int32_t other = shuffle_xor(top, mask);
      top = other > top ? other : top;
    }
    JUNO_UNROLL
    for (int j = 0; j < 8; ++j) {
      const int s = 8 * j + lane() % 8;
      x[i][j] = x[i][j] * power_of_2(distance(n[j], top));
      if (kEdge && (s < begin || s >= end)) x[i][j] = 0;
    }
    // The halving tree over 64 slots: 32, 16 and 8 here, 4, 2 and 1 among lanes.
    float tree[4];
    JUNO_UNROLL
    for (int j = 0; j < 4; ++j) tree[j] = x[i][j] + x[i][4 + j];
    float l = (tree[0] + tree[2]) + (tree[1] + tree[3]);
    JUNO_UNROLL
    for (int mask = 4; mask > 0; mask /= 2) l = l + shuffle_xor(l, mask);
    top_[i] = top;
    l_[i] = begin < end ? l : kNothing;
  }
}

// [slots, 32 rows]: fours of rows are shuffled from slot to slot, so that lanes that store meet in few banks.
template <class Shape>
JUNO_GPU void PromptGroup<Shape>::store_weights(const float (&w)[8][8]) const {
  const int x = lane() % 8;
  float* const to = weights() + x * 32;
  JUNO_UNROLL
  for (int j = 0; j < 8; ++j) {
    JUNO_UNROLL
    for (int h = 0; h < 2; ++h)
      *reinterpret_cast<Floats4*>(to + j * 256 + ((lane() / 8 * 2 + h) ^ x) * 4) = {
          {w[4 * h][j], w[4 * h + 1][j], w[4 * h + 2][j], w[4 * h + 3][j]}};
  }
}

template <class Shape>
JUNO_GPU void PromptGroup<Shape>::load_values(int64_t page, int column, Quad32 (&to)[kPieces]) const {
  const int dim = a_.places.value_dim;
  const uint16_t* const from =
      a_.places.values + (page * a_.places.kv_heads + tile_.kv_head) * Shape::kSlots * dim;
  JUNO_UNROLL
  for (int m = 0; m < kPieces; ++m) {
    const int i = thread() % Shape::kTeam + m * Shape::kTeam, slot = i / (Shape::kColumns / 8),
              d = column + i % (Shape::kColumns / 8) * 8;
    to[m] = d < dim ? load16(from + slot * dim + d) : Quad32{};
  }
}
template <class Shape>
JUNO_GPU void PromptGroup<Shape>::store_values(const Quad32 (&from)[kPieces]) const {
  auto* const to = at<Floats4>(Shape::kV);
  JUNO_UNROLL
  for (int m = 0; m < kPieces; ++m) {
    const int i = thread() % Shape::kTeam + m * Shape::kTeam;
    const uint32_t* const x = from[m].x;
    to[2 * i] = {{widened(x, 0), widened(x, 1), widened(x, 2), widened(x, 3)}};
    to[2 * i + 1] = {{widened(x, 4), widened(x, 5), widened(x, 6), widened(x, 7)}};
  }
}

// What is added for one slot: the weights of 8 rows, and the values of the thread's columns.
template <class Shape>
JUNO_GPU void PromptGroup<Shape>::load_slot(int s, Slot& to) const {
  const float* const weight = weights() + s * 32;
  const float* const value = at<float>(Shape::kV) + s * Shape::kColumns + lane() % 8 * 4;
  JUNO_UNROLL
  for (int h = 0; h < 2; ++h) {
    const Floats4 four = *reinterpret_cast<const Floats4*>(weight + ((lane() / 8 * 2 + h) ^ (s & 7)) * 4);
    JUNO_UNROLL
    for (int e = 0; e < 4; ++e) to.weight[4 * h + e] = four.x[e];
  }
  JUNO_UNROLL
  for (int c = 0; c < kFours; ++c) {
    const Floats4 four = *reinterpret_cast<const Floats4*>(value + 32 * c);
    JUNO_UNROLL
    for (int e = 0; e < 4; ++e) to.value[4 * c + e] = four.x[e];
  }
}

// Slots in order, the next one's numbers on their way; with kEdge rows differ in those that they see.
template <class Shape>
template <bool kEdge>
JUNO_GPU void PromptGroup<Shape>::add_values(int start, int begin, int end,
                                             float (&sum)[8][4 * kFours]) const {
  int low[8], high[8];
  if (kEdge) {
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) tile_.slots_of(a_, first_row_ + i, start, low[i], high[i]);
  }
  constexpr int kTogether = kEdge ? 1 : 4;
  Slot slots[2];
  load_slot(begin, slots[0]);
  JUNO_UNROLL_BY(1)
  for (int first = begin; first < end; first += kTogether) {
    JUNO_UNROLL
    for (int t = 0; t < kTogether; ++t) {
      const int s = first + t;
      Slot& now = slots[kEdge ? 0 : t % 2];
      if (!kEdge) load_slot((s + 1) % Shape::kSlots, slots[(t + 1) % 2]);
      JUNO_UNROLL
      for (int i = 0; i < 8; ++i) {
        if (kEdge && (s < low[i] || s >= high[i])) continue;
        JUNO_UNROLL
        for (int c = 0; c < 4 * kFours; ++c) sum[i][c] = fma(now.weight[i], now.value[c], sum[i][c]);
      }
      if (kEdge) load_slot((s + 1) % Shape::kSlots, now);
    }
  }
}

// The rows' states take this chunk in, in its turn.
template <class Shape>
JUNO_GPU void PromptGroup<Shape>::advance(int turn) {
  if (turn > 0)
    shared<Arrivals>(Shape::kTurns)[(1 - group_) * Shape::kWarps + warp() % Shape::kWarps].wait((turn - 1) /
                                                                                                2 % 2);
  RowState* const states = shared<RowState>(Shape::kStates) + first_row_;
  RowState now[8];
  JUNO_UNROLL
  for (int i = 0; i < 8; ++i) {
    now[i] = states[i];
    begins_[i] = now[i].l == kNothing;
    keep_[i] = 1, take_[i] = 0;  // nothing of this chunk is seen
    if (l_[i] == kNothing) continue;
    if (begins_[i]) {
      now[i] = {top_[i], l_[i]};
      take_[i] = 1;
    } else {
      const int32_t both = now[i].n > top_[i] ? now[i].n : top_[i];
      keep_[i] = power_of_2(distance(now[i].n, both));
      take_[i] = power_of_2(distance(top_[i], both));
      now[i] = {both, now[i].l * keep_[i] + l_[i] * take_[i]};
    }
  }
  warp_barrier();
  JUNO_UNROLL
  for (int i = 0; i < 8; ++i)
    if (lane() % 8 == i) states[i] = now[i];
}

// What the rows come to so far lies where the result will be; before a row begins it is as good as 0.
template <class Shape>
JUNO_GPU void PromptGroup<Shape>::merge(int column, const float (&sum)[8][4 * kFours]) const {
  constexpr int kTogether = 4;  // rows whose loads wait together
  JUNO_UNROLL
  for (int first = 0; first < 8; first += kTogether) {
    Floats4 o[kTogether][kFours] = {};
    JUNO_UNROLL
    for (int j = 0; j < kTogether; ++j) {
      const Floats4* const y = output(first + j);
      JUNO_UNROLL
      for (int c = 0; c < kFours; ++c)
        if (y && !begins_[first + j] && has_column(column + 32 * c)) o[j][c] = y[column / 4 + 8 * c];
    }
    JUNO_UNROLL
    for (int j = 0; j < kTogether; ++j) {
      const int i = first + j;
      Floats4* const y = output(i);
      JUNO_UNROLL
      for (int c = 0; c < kFours; ++c) {
        JUNO_UNROLL
        for (int e = 0; e < 4; ++e) o[j][c].x[e] = o[j][c].x[e] * keep_[i] + sum[i][4 * c + e] * take_[i];
        if (y && has_column(column + 32 * c)) y[column / 4 + 8 * c] = o[j][c];
      }
    }
  }
}

template <class Shape>
JUNO_GPU void PromptGroup<Shape>::finish() const {
  JUNO_UNROLL_BY(1)
  for (int i = 0; i < 8; ++i) {
    Floats4* const y = output(i);
    if (!y) continue;
    const float l = shared<RowState>(Shape::kStates)[first_row_ + i].l;
    JUNO_UNROLL_BY(1)
    for (int column = 0; has_column(column); column += 32) {
      Floats4 o = y[column / 4];
      JUNO_UNROLL
      for (int e = 0; e < 4; ++e) o.x[e] = o.x[e] / l;
      y[column / 4] = o;
    }
  }
}

template <class Shape>
JUNO_GPU void PromptGroup<Shape>::attend(int chunk, int next, int turn, bool last) {
  const int start = chunk * Shape::kSlots, last_position = tile_.last();
  const bool whole =
      start + Shape::kSlots - 1 <= tile_.position && window_begin(last_position, a_.window) <= start;
  const int64_t page = page_of(chunk), next_page = page_of(next >= 0 ? next : chunk);
  copies_wait<0>();
  team_barrier(group_, Shape::kTeam);
  Quad32 values[kPieces];
  {
    float x[8][8];
    compute_dots(x);
    team_barrier(group_, Shape::kTeam);
    load_values(page, 0, values);
    if (next >= 0) load_keys(next_page);
    if (whole) weigh<false>(start, x);
    else weigh<true>(start, x);
    warp_barrier();
    store_weights(x);
  }
  const int first = window_begin(tile_.position, a_.window);
  const int begin = first > start ? first - start : 0,
            end = last_position - start + 1 < Shape::kSlots ? last_position - start + 1 : Shape::kSlots;
  JUNO_UNROLL_BY(1)
  for (int column = 0; column < Shape::kDim; column += Shape::kColumns) {
    if (column > 0) {
      team_barrier(group_, Shape::kTeam);
      load_values(page, column, values);
    }
    store_values(values);
    team_barrier(group_, Shape::kTeam);
    float sum[8][4 * kFours] = {};
    if (whole) add_values<false>(start, 0, Shape::kSlots, sum);
    else add_values<true>(start, begin, end, sum);
    if (column == 0) advance(turn);
    merge(column, sum);
  }
  warp_barrier();
  if (lane() == 0) shared<Arrivals>(Shape::kTurns)[group_ * Shape::kWarps + warp() % Shape::kWarps].arrive();
  if (last) finish();
}

// Queries, where pieces of 8 are shuffled among the rows that a warp reads together.
template <class Shape>
JUNO_GPU void load_queries(const PromptArgs& a, const PromptTile& tile) {
  const int dim = a.places.key_dim;
  JUNO_UNROLL_BY(4)
  for (int i = thread(); i < Shape::kRows * Shape::kDim / 4; i += Shape::kThreads) {
    const int r = i / (Shape::kDim / 4), d = i % (Shape::kDim / 4) * 4;
    Floats4 four = {};
    if (tile.has(r) && d < dim) four = *reinterpret_cast<const Floats4*>(a.q + tile.head_of(a, r) * dim + d);
    *reinterpret_cast<Floats4*>(shared<float>() + r * Shape::kDim + ((d / 8) ^ (r / 8 % 4)) * 8 + d % 8) =
        four;
  }
}

// `turn`: chunks that this block has done.
template <class Shape>
JUNO_GPU int attend_tile(const PromptArgs& a, const PromptTile& tile, int turn) {
  PromptGroup<Shape> mine(a, tile);
  const int first = window_begin(tile.position, a.window) / Shape::kSlots, last = tile.last() / Shape::kSlots;
  const int end = turn + last - first + 1, group = thread() / Shape::kTeam;
  const int begin = turn + (turn % 2 == group ? 0 : 1), to_chunk = first - turn;
  barrier();
  if (begin < end) mine.load_keys(mine.page_of(begin + to_chunk));
  load_queries<Shape>(a, tile);
  if (const int r = thread(); r < Shape::kRows) {
    shared<RowState>(Shape::kStates)[r] = {0, kNothing};
    shared<int32_t>(Shape::kHeads)[r] = tile.has(r) ? static_cast<int32_t>(tile.head_of(a, r)) : -1;
  }
  barrier();
  for (int t = begin; t < end; t += 2)
    mine.attend(t + to_chunk, t + 2 < end ? t + 2 + to_chunk : -1, t, t + 1 == end);
  return end;
}

// Grid: (heads of the cache, tiles of rows). Later rows see more, so they begin first.
template <class Shape>
JUNO_GPU void attend_prompt(const PromptArgs& a) {
  if (thread() < 2 * Shape::kWarps) shared<Arrivals>(Shape::kTurns)[thread()].init(1);
  wait_dependency();
  const int share = Shape::kRows * a.places.kv_heads / a.heads;
  const int begin = (blocks_y() - 1 - block_y()) * share;
  const int end = begin + share < a.rows ? begin + share : a.rows;
  int turn = 0;
  for (int row = begin; row < end;) {
    if (!in_run(a.places, row, a.rows)) {
      ++row;
      continue;
    }
    const PromptTile tile(a, row, end);
    turn = attend_tile<Shape>(a, tile, turn);
    row += tile.rows;
  }
}

}  // namespace juno::gpu
