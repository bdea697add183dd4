// SPDX-License-Identifier: Apache-2.0
// Products of many tokens with integer weights (docs/numerics.md §3) on tensor cores: weights become integers
// in halves in registers, activations wait in shared memory, and every scale meets an exact integer sum.
// Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/fragments.h"
#include "backend/gpu/kernels/panels.h"
#include "quant/dot.h"

namespace juno::gpu {

// One warp's part of bringing activations, stage after stage: a slab, the sums, or the scales of each block.
// Rows behind the last ones come too.
template <class Shape>
struct ActivationFetch {
  const unsigned char* from;
  int64_t further;  // to the next piece, and from a stage's first piece to the next stage's
  int64_t stage;
  int to, bytes, pieces;  // of a stage; of a piece; how many

  JUNO_GPU ActivationFetch(const ManyArgs& a, int64_t token, int first, int part) : pieces(1) {
    const int64_t rows = a.x.rows;
    if (part < 2) {
      bytes = Shape::kTokens * kSlabDepth * 2;
      to = part * bytes;
      stage = rows * (kStageDepth * 2);
      from = reinterpret_cast<const unsigned char*>(a.x.q) + (part * rows + token) * (kSlabDepth * 2);
    } else if (part == 2) {
      bytes = Shape::kTokens * 16;
      to = Shape::kH;
      stage = rows * 16;
      from = reinterpret_cast<const unsigned char*>(a.x.h) + token * 16;
    } else {
      pieces = kStageDepth / a.block;
      bytes = Shape::kTokens * 4;
      to = Shape::kD;
      stage = rows * 4 * pieces;
      from = reinterpret_cast<const unsigned char*>(a.x.d) + token * 4;
    }
    further = rows * 4;
    from += first * stage;
  }
  JUNO_GPU void fetch(Arrivals& landed, unsigned char* slot) {
    fetch_begin(landed, bytes * pieces);
    JUNO_UNROLL_BY(1)
    for (int i = 0; i < pieces; ++i)
      juno::gpu::fetch(landed, slot + to + i * bytes, from + i * further, bytes);
    fetch_end(landed);
    from += stage;
  }
};

// Tiles of the result, tiles of tokens first, so that neighbours read the same weights. Resident blocks take
// in turn what is one block's alone, then the shares of the other tiles.
template <class Shape>
struct Work {
  int across, down = 0, whole, splits, count;

  JUNO_GPU explicit Work(const ManyArgs& a)
      : across((a.rows + Shape::kTokens - 1) / Shape::kTokens), whole(a.whole), splits(a.splits) {
    JUNO_UNROLL
    for (int i = 0; i < 3; ++i)
      if (i < a.part_count) down += (a.parts[i].weight.rows + Shape::kRows - 1) / Shape::kRows;
    count = whole + shared_tiles() * splits;
  }
  JUNO_GPU int shared_tiles() const { return across * down - whole; }
  JUNO_GPU int tile(int item) const { return item < whole ? item : whole + (item - whole) % shared_tiles(); }
  JUNO_GPU int splits_of(int item) const { return item < whole ? 1 : splits; }
  JUNO_GPU int split(int item) const { return item < whole ? 0 : (item - whole) / shared_tiles(); }
  JUNO_GPU int first_token(int item) const { return tile(item) % across * Shape::kTokens; }
  // The part of the product that an item is of, and its first row there.
  JUNO_GPU MatvecPart part(const ManyArgs& a, int item, int& first_row) const {
    int tile = this->tile(item) / across;
    MatvecPart part = a.parts[0];
    JUNO_UNROLL
    for (int i = 1; i < 3; ++i) {
      const int tiles = (part.weight.rows + Shape::kRows - 1) / Shape::kRows;
      if (i >= a.part_count || tile < tiles) break;
      tile -= tiles;
      part = a.parts[i];
    }
    first_row = tile * Shape::kRows;
    return part;
  }
};

// The groups of K that an item adds up, in blocks of activations.
struct Groups {
  int first, count, blocks;

  JUNO_GPU Groups(const ManyArgs& a, int split, int splits)
      : first(split * (8 / splits)), count(8 / splits), blocks(a.k / a.block) {}
  // Where group i of these begins; that of the last one and one more is where it ends.
  JUNO_GPU int begin(int i) const { return static_cast<int>(quant::group_begin(first + i, blocks)); }
};

// The ring of stages of K in shared memory, filled by the block's last warpgroup and emptied by its
// warpgroups, each at its own pace, item after item.
template <class F, class Shape>
struct Ring {
  static constexpr int kWeights = staged_offset<F>(kPlaneCount<F>, Shape::kRows);
  static constexpr int kStages = Shape::stages(kWeights);
  static constexpr int kStageBytes = Shape::stage_bytes(kWeights);
  static constexpr int kHeld = Shape::kBarriers + kStages * kStageBytes;  // where sums wait
  static_assert(kStages >= 2);

  int slot = 0, round = 0;

  JUNO_GPU static Arrivals* full(int slot) { return shared<Arrivals>() + slot; }
  JUNO_GPU static Arrivals* empty(int slot) { return shared<Arrivals>() + kStages + slot; }
  JUNO_GPU static unsigned char* slot_at(int slot) { return shared(Shape::kBarriers + slot * kStageBytes); }
  JUNO_GPU const unsigned char* wait_full() const {
    full(slot)->wait(round & 1);
    return slot_at(slot);
  }
  JUNO_GPU void next() {
    if (++slot == kStages) slot = 0, ++round;
  }

  JUNO_GPU static void init() {
    if (thread() == 0) {
      for (int i = 0; i < kStages; ++i) {
        full(i)->init(kFetchArrivals * Shape::kFetchers / kWarp + Shape::kFetchers);
        empty(i)->init(Shape::kConsumers / kWarp);
      }
      arrivals_ready();
    }
    barrier();
  }

  // By the last warpgroup. The first weights may come before what earlier kernels wrote.
  JUNO_GPU void fill(const ManyArgs& a, const Work<Shape>& work) {
    JUNO_UNROLL_BY(1)
    for (int item = block_x(); item < work.count; item += blocks_x()) {
      const Groups groups(a, work.split(item), work.splits_of(item));
      const int first = groups.begin(0) * a.block / kStageDepth;
      const int end = (groups.begin(groups.count) * a.block + kStageDepth - 1) / kStageDepth;
      int first_row;
      const Weight w = work.part(a, item, first_row).weight;
      StageFetch<F, Shape::kRows, Shape::kFetchers> weights(w, first_row, first,
                                                            thread() - Shape::kConsumers);
      ActivationFetch<Shape> activations(a, work.first_token(item), first,
                                         warp() - Shape::kConsumers / kWarp);
      int ahead = first;  // whose weights have been asked for
      if (item == block_x()) {
        JUNO_UNROLL_BY(1)
        for (; ahead < end && ahead < first + kStages; ++ahead)
          weights.fetch(slot_at(ahead - first) + Shape::kW, ahead);
        wait_dependency();
      }
      JUNO_UNROLL_BY(1)
      for (int stage = first; stage < end; ++stage) {
        empty(slot)->wait(~round & 1);
        activations.fetch(*full(slot), slot_at(slot));
        if (stage >= ahead) weights.fetch(slot_at(slot) + Shape::kW, stage);
        copies_arrive(*full(slot));
        next();
      }
    }
    // Who copies stays until all is read.
    JUNO_UNROLL_BY(1)
    for (int i = 0; i < kStages; ++i) {
      empty(slot)->wait(~round & 1);
      next();
    }
  }
};

// What a thread adds up: the open group, and the tree over the groups that are done. Its lower levels wait in
// registers, the next ones in shared memory, what is seldom wanted in memory.
template <class Shape>
struct GroupSums {
  static constexpr int kSums = Shape::kSums;

  float open[kSums] = {};
  float level[Shape::kLevels > 0 ? Shape::kLevels : 1][kSums];
  Floats4 *held, *parked;  // [levels, sums / 4, threads]
  Groups groups;
  int done = 0, edge;

  JUNO_GPU GroupSums(const Groups& of, Floats4* held_, Floats4* parked_)
      : held(held_), parked(parked_), groups(of), edge(of.begin(1)) {}

  // Blocks before `block` are in.
  JUNO_GPU void close_groups(int block) {
    JUNO_UNROLL_BY(1)
    while (done < groups.count && block == edge) {
      fold<0>();
      if (++done < groups.count) {
        JUNO_UNROLL
        for (float& sum : open) sum = 0;
      }
      edge = groups.begin(done + 1);
    }
  }

 private:
  // The open group goes into the tree from level kLevel on; what is complete meets its neighbour.
  template <int kLevel>
  JUNO_GPU void fold() {
    if constexpr (kLevel < Shape::kDepth) {
      constexpr bool kNear = kLevel < Shape::kLevels;
      constexpr int kBehind = kLevel - Shape::kLevels, kAway = kBehind - Shape::kHeldLevels;
      float(&near)[kSums] = level[kNear ? kLevel : 0];
      Floats4* far = kAway < 0 ? held + kBehind * (kSums / 4) * Shape::kConsumers
                               : parked + kAway * (kSums / 4) * Shape::kConsumers;
      if ((done >> kLevel & 1) == 0) {
        JUNO_UNROLL
        for (int i = 0; i < kSums; i += 4) {
          const Floats4 four = {open[i], open[i + 1], open[i + 2], open[i + 3]};
          if (!kNear) far[i / 4 * Shape::kConsumers] = four;
          JUNO_UNROLL
          for (int j = 0; kNear && j < 4; ++j) near[i + j] = four.x[j];
        }
      } else {
        JUNO_UNROLL
        for (int i = 0; i < kSums; i += 4) {
          const Floats4 four = kNear ? Floats4{near[i], near[i + 1], near[i + 2], near[i + 3]}
                                     : far[i / 4 * Shape::kConsumers];
          JUNO_UNROLL
          for (int j = 0; j < 4; ++j) open[i + j] = four.x[j] + open[i + j];
        }
        fold<kLevel + 1>();
      }
    }
  }
};

// sums += scale of the row * scale of the activations * c
template <int kSums>
JUNO_GPU void scale_in(float* sums, const float (&c)[kSums], const float (&row)[2], const float* d) {
  JUNO_UNROLL
  for (int j = 0; j < kSums / 4; ++j) {
    const float first = d[8 * j], second = d[8 * j + 1];
    sums[4 * j] = fma(row[0] * first, c[4 * j], sums[4 * j]);
    sums[4 * j + 1] = fma(row[0] * second, c[4 * j + 1], sums[4 * j + 1]);
    sums[4 * j + 2] = fma(row[1] * first, c[4 * j + 2], sums[4 * j + 2]);
    sums[4 * j + 3] = fma(row[1] * second, c[4 * j + 3], sums[4 * j + 3]);
  }
}

JUNO_GPU int log2_of_block(const ManyArgs& a) { return a.block == 128 ? 7 : a.block == 64 ? 6 : 5; }

// Fragments of words [kFirst, kEnd) of step `step` of the weights, and the scales of both rows.
template <class Shape, int kFirst, int kEnd, class Weights>
JUNO_GPU void expand_words(Weights& weights, const unsigned char* in, int row, int step, float (&scale)[2],
                           typename Weights::Words& to) {
  weights.template load<Shape::kRows>(in + Shape::kW, row, step);
  JUNO_UNROLL
  for (int w = kFirst; w < kEnd; ++w) weights.expand(w, to[w], scale);
}
// c (+)= these words, of a step whose first 16 elements are number `at` of the stage.
template <class Shape, class Weights, int kFirst, int kEnd, int kSums>
JUNO_GPU void multiply_words(float (&c)[kSums], const typename Weights::Words& words, const unsigned char* in,
                             int at, bool fresh, int token = 0) {
  products_begin();
  JUNO_UNROLL
  for (int w = kFirst; w < kEnd; ++w) {
    JUNO_UNROLL
    for (int i = 0; i < 2 * Weights::kParts; ++i)
      multiply<Shape::kTokens>(c, words[w][i], in, token, 2 * (at + 2 * w + i % 2),
                               fresh && w == 0 && i == 0);
  }
  products_end();
}

// One step of kUnit elements of K: exact sums c, which at the end of a unit (docs/numerics.md) meet their
// scales; after a block's last unit its minimum.
template <class F, int kUnit, class Shape>
JUNO_GPU void multiply_step(const ManyArgs& a, const unsigned char* in, int row, int step,
                            float (&c)[Shape::kSums], GroupSums<Shape>& sums) {
  using Weights = Fragments<F, kUnit>;
  const int unit = quant::kUnit<F> < a.block ? quant::kUnit<F> : a.block;  // all of these are powers of two
  const int at = step % (kStageDepth / kUnit), block = at * kUnit >> log2_of_block(a);  // in the stage
  const bool ends_unit = quant::kUnit<F> == kUnit || ((at + 1) * kUnit & (unit - 1)) == 0;
  const bool ends_block = kUnit == kStageDepth || ((at + 1) * kUnit & (a.block - 1)) == 0;
  const float* d = reinterpret_cast<const float*>(in + Shape::kD) + block * Shape::kTokens + lane() % 4 * 2;
  const bool fresh = quant::kUnit<F> == kUnit || (at * kUnit & (unit - 1)) == 0;
  float scale[2];
  Weights weights;
  typename Weights::Words words;
  expand_words<Shape, 0, Weights::kWords>(weights, in, row, step, scale, words);
  multiply_words<Shape, Weights, 0, Weights::kWords>(c, words, in, at * (kUnit / 16), fresh);
  products_wait<0>(c);
  if (ends_unit) scale_in(sums.open, c, scale, d);
  if constexpr (Weights::kMinima) {
    if (!ends_block) return;
    uint32_t minima[2];
    weights.minima(step / (kStageDepth / kUnit), lane() % 4 * 32 >> log2_of_block(a) == block, minima, scale);
    products_begin();
    multiply_half(c, minima, in + Shape::kH);
    products_end();
    products_wait<0>(c);
    scale_in(sums.open, c, scale, d);
  }
}

// A whole stage of units that have no minima, inside one group. Where products are long there are two sets of
// sums, of half of the tokens where these are many: while one is multiplied the other meets its scales, and
// the next unit becomes fragments.
template <class F, int kUnit, class Shape>
JUNO_GPU void multiply_stage(const ManyArgs& a, const unsigned char* in, int row, int stage,
                             GroupSums<Shape>& sums) {
  using Weights = Fragments<F, kUnit>;
  constexpr int kUnits = kStageDepth / kUnit, kHalves = Shape::kTiles >= 16 ? 2 : 1,
                kTurns = kUnits * kHalves;
  constexpr int kSums = Shape::kSums / kHalves, kTokens = Shape::kTokens / kHalves,
                kLate = Shape::kAhead ? 1 : 0;
  float c[kLate + 1][kSums], scale[2][2];
  typename Weights::Words words[2];
  Weights weights;
  const float* d = reinterpret_cast<const float*>(in + Shape::kD) + lane() % 4 * 2;
  const auto expand = [&](int unit) {
    expand_words<Shape, 0, Weights::kWords>(weights, in, row, stage * kUnits + unit, scale[unit % 2],
                                            words[unit % 2]);
  };
  expand(0);
  JUNO_UNROLL
  for (int turn = 0; turn < kTurns + kLate; ++turn) {
    const int unit = turn / kHalves, met = turn - kLate;  // what is multiplied, and what meets its scales
    if (turn < kTurns)
      multiply_words<Shape, Weights, 0, Weights::kWords>(c[turn % (kLate + 1)], words[unit % 2], in,
                                                         unit * (kUnit / 16), true, turn % kHalves * kTokens);
    const bool next = turn % kHalves == kHalves - 1 && unit + 1 < kUnits;
    if (next && kHalves > kLate) expand(unit + 1);
    if (met >= 0) {
      auto& sum = c[met % (kLate + 1)];
      if (turn < kTurns) products_wait<kLate>(sum);
      else products_wait<0>(sum);
      scale_in(sums.open + met % kHalves * kSums, sum, scale[met / kHalves % 2],
               d + (met / kHalves * kUnit >> log2_of_block(a)) * Shape::kTokens + met % kHalves * kTokens);
    }
    if (next && kHalves <= kLate) expand(unit + 1);
  }
}

// All stages of an item whose steps are stages, and blocks of activations. While half of a stage is
// multiplied, the other half, then half of the next stage becomes fragments; while sums meet their scales,
// the minima are multiplied, of half of the tokens at a time.
template <class F, class Shape>
JUNO_GPU void multiply_stages(Ring<F, Shape>& ring, GroupSums<Shape>& sums) {
  using Weights = Fragments<F, kStageDepth>;
  constexpr int kHalf = Weights::kWords / 2, kLow = Shape::kSums / 2, kFurther = Shape::kTokens / 2;
  const int row = warp() * 16 + lane() / 4, end = sums.groups.begin(sums.groups.count);
  int stage = sums.groups.begin(0);
  sums.close_groups(stage);
  Weights weights;
  typename Weights::Words words;
  float scale[2];
  if (stage < end) expand_words<Shape, 0, kHalf>(weights, ring.wait_full(), row, stage, scale, words);
  JUNO_UNROLL_BY(1)
  while (stage < end) {
    const unsigned char* in = ring.slot_at(ring.slot);
    const float* d = reinterpret_cast<const float*>(in + Shape::kD) + lane() % 4 * 2;
    float c[Shape::kSums], low[kLow], lowest[kLow], minimum_scale[2];
    uint32_t minima[2];
    multiply_words<Shape, Weights, 0, kHalf>(c, words, in, 0, true);
    expand_words<Shape, kHalf, Weights::kWords>(weights, in, row, stage, scale, words);
    multiply_words<Shape, Weights, kHalf, Weights::kWords>(c, words, in, 0, false);
    if constexpr (Weights::kMinima) {
      weights.minima(stage, true, minima, minimum_scale);
      products_begin();
      multiply_half(low, minima, in + Shape::kH);
      products_end();
    }
    const float now[2] = {scale[0], scale[1]};
    auto* const emptied = ring.empty(ring.slot);
    ring.next();
    if (++stage < end) {
      products_wait<Weights::kMinima ? 2 : 1>();
      expand_words<Shape, 0, kHalf>(weights, ring.wait_full(), row, stage, scale, words);
    }
    products_wait<Weights::kMinima ? 1 : 0>(c);
    scale_in(sums.open, c, now, d);
    if constexpr (Weights::kMinima) {
      products_wait<0>(low);
      products_begin();
      multiply_half(lowest, minima, in + Shape::kH + kFurther * 16);
      products_end();
      scale_in(sums.open, low, minimum_scale, d);
      products_wait<0>(lowest);
      scale_in(sums.open + kLow, lowest, minimum_scale, d + kFurther);
    }
    tiles_read();
    warp_barrier();
    if (lane() == 0) emptied->arrive();
    sums.close_groups(stage);
  }
}

// Leaves an item's sums for the block that comes last to its tile; true there, which then has the upper tree
// over what all have left.
template <class Shape>
JUNO_GPU bool join_splits(const ManyArgs& a, int tile, int split, float (&sums)[Shape::kSums],
                          uint32_t* last) {
  constexpr int kEach = Shape::kSums / 4 * Shape::kConsumers;
  Floats4* parts = reinterpret_cast<Floats4*>(a.partial) + int64_t{tile} * a.splits * kEach + thread();
  JUNO_UNROLL
  for (int i = 0; i < Shape::kSums; i += 4)
    parts[split * kEach + i / 4 * Shape::kConsumers] = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
  fence();
  team_barrier(0, Shape::kConsumers);
  if (thread() == 0) {
    uint32_t* arrived = a.arrived + tile;
    *last = atomic_add(arrived, 1) + 1 == static_cast<uint32_t>(a.splits);
    if (*last) *arrived = 0;
  }
  team_barrier(0, Shape::kConsumers);
  fence();
  if (!*last) return false;
  constexpr int kBatch = 8;  // sums at once: as many loads under way as registers hold
  JUNO_UNROLL
  for (int i = 0; i < Shape::kSums; i += kBatch) {
    Floats4 x[kBatch / 4][8] = {};
    JUNO_UNROLL
    for (int j = 0; j < 2 * kBatch; ++j)
      if (j % 8 < a.splits) x[j / 8][j % 8] = parts[j % 8 * kEach + (i / 4 + j / 8) * Shape::kConsumers];
    JUNO_UNROLL
    for (int j = 0; j < kBatch; ++j) {
      float y[8];
      JUNO_UNROLL
      for (int s = 0; s < 8; ++s) y[s] = x[j / 4][s].x[j % 4];
      JUNO_UNROLL
      for (int n = 8; n > 1; n /= 2) {
        JUNO_UNROLL
        for (int s = 0; s < n / 2; ++s)
          if (n <= a.splits) y[s] = y[2 * s] + y[2 * s + 1];
      }
      sums[i + j] = y[0];
    }
  }
  return true;
}

// y[token, row] of a thread's sums; under int8x2 two neighbouring rows of activations are one token.
template <class Shape>
JUNO_GPU void store_sums(const ManyArgs& a, const MatvecPart& part, int first_token, int first_row,
                         const float (&sums)[Shape::kSums]) {
  constexpr int kBatch = Shape::kTiles < 4 ? Shape::kTiles : 4;
  const int row = first_row + lane() / 4, first = (first_token + lane() % 4 * 2) / a.planes;
  const int tokens = a.rows / a.planes, further = 8 / a.planes;
  JUNO_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int o = row + 8 * half;
    const bool there = o < part.weight.rows;
    const float bias = part.bias && there ? part.bias[o] : 0.0f;
    JUNO_UNROLL
    for (int j = 0; j < Shape::kTiles; j += kBatch) {
      float y[kBatch][2], before[kBatch][2] = {};
      JUNO_UNROLL
      for (int n = 0; n < 2 * kBatch; ++n) {
        const int t = first + (j + n / 2) * further + n % 2;
        y[n / 2][n % 2] = sums[4 * (j + n / 2) + 2 * half + n % 2];
        if (a.residual && there && t < tokens) before[n / 2][n % 2] = a.residual[t * part.y_stride + o];
      }
      JUNO_UNROLL
      for (int n = 0; n < 2 * kBatch; ++n) {
        const int t = first + (j + n / 2) * further + n % 2;
        float sum = y[n / 2][n % 2];
        if (a.planes == 2) sum = sum + y[n / 2][1];
        if (part.bias) sum = sum + bias;
        if (a.residual) sum = before[n / 2][n % 2] + sum;
        if (there && t < tokens && (n % 2 == 0 || a.planes == 1)) part.y[t * part.y_stride + o] = sum;
      }
    }
  }
}

// All stages of an item, step by step.
template <class F, int kUnit, class Shape>
JUNO_GPU void multiply_steps(const ManyArgs& a, Ring<F, Shape>& ring, GroupSums<Shape>& sums) {
  constexpr int kPerStage = kStageDepth / kUnit;
  constexpr bool kWhole = quant::kUnit<F> == kUnit && !Fragments<F, kUnit>::kMinima;
  const int per_block = a.block / kUnit, row = warp() * 16 + lane() / 4;
  const int first = sums.groups.begin(0) * per_block, end = sums.groups.begin(sums.groups.count) * per_block;
  sums.close_groups(sums.groups.begin(0));
  JUNO_UNROLL_BY(1)
  for (int stage = first / kPerStage; stage < (end + kPerStage - 1) / kPerStage; ++stage) {
    const unsigned char* in = ring.wait_full();
    const int from = stage * kPerStage, to = from + kPerStage;
    const int behind = to * kUnit >> log2_of_block(a);  // the block that follows the stage
    if (kWhole && from >= first && to <= end && behind <= sums.edge) {
      multiply_stage<F, kUnit>(a, in, row, stage, sums);
      sums.close_groups(behind);
    } else {
      JUNO_UNROLL_BY(1)
      for (int step = from < first ? first : from; step < to && step < end; ++step) {
        float c[Shape::kSums];
        multiply_step<F, kUnit>(a, in, row, step, c, sums);
        if (((step + 1) & (per_block - 1)) == 0) sums.close_groups((step + 1) * kUnit >> log2_of_block(a));
      }
    }
    tiles_read();
    warp_barrier();
    if (lane() == 0) ring.empty(ring.slot)->arrive();
    ring.next();
  }
}

// Grid: as many blocks as are resident, or as there is work for. kUnit elements of K are a step: the format's
// unit, or 32.
template <class F, int kUnit, class Shape>
JUNO_GPU void multiply_many(const ManyArgs& a) {
  trigger_dependents();
  const Work<Shape> work(a);
  Ring<F, Shape> ring;
  ring.init();
  if (thread() >= Shape::kConsumers) {
    keep_registers<Shape::kFetchRegisters>();
    ring.fill(a, work);
    return;
  }
  take_registers<Shape::kRegisters>();
  auto* last = reinterpret_cast<uint32_t*>(shared(Shape::kBarriers - 16));
  Floats4* parked = reinterpret_cast<Floats4*>(a.parked) + block_x() * (Shape::kParked / 16) + thread();
  JUNO_UNROLL_BY(1)
  for (int item = block_x(); item < work.count; item += blocks_x()) {
    const int splits = work.splits_of(item);
    GroupSums<Shape> sums(Groups(a, work.split(item), splits), shared<Floats4>(ring.kHeld) + thread(),
                          parked);
    if constexpr (kUnit == kStageDepth && Shape::kAhead) multiply_stages<F, Shape>(ring, sums);
    else multiply_steps<F, kUnit, Shape>(a, ring, sums);
    wait_dependency();
    if (splits > 1 && !join_splits<Shape>(a, work.tile(item) - work.whole, work.split(item), sums.open, last))
      continue;
    int first_row;
    const MatvecPart part = work.part(a, item, first_row);
    store_sums<Shape>(a, part, work.first_token(item), first_row + warp() * 16, sums.open);
  }
}

}  // namespace juno::gpu
