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

  JUNO_GPU ActivationFetch(const ManyArgs& a, int first, int part) : pieces(1) {
    const int64_t rows = a.x.rows, token = block_x() * Shape::kTokens;
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

// The ring of stages of K in shared memory, filled by the block's last warpgroup and emptied by its
// warpgroups, each at its own pace.
template <class F, class Shape>
struct Ring {
  static constexpr int kWeights = staged_offset<F>(kPlaneCount<F>, Shape::kRows);
  static constexpr int kStages = Shape::stages(kWeights);
  static constexpr int kStageBytes = Shape::stage_bytes(kWeights);
  static constexpr int kParked = Shape::kBarriers + kStages * kStageBytes;
  static_assert(kStages >= 2 && kStages * kStageBytes >= Shape::kTokens * Shape::kPitch * 4);

  const ManyArgs& a;
  int first, end;  // stages of K

  JUNO_GPU static Arrivals* full(int slot) { return shared<Arrivals>() + slot; }
  JUNO_GPU static Arrivals* empty(int slot) { return shared<Arrivals>() + kStages + slot; }
  JUNO_GPU static unsigned char* slot_at(int slot) { return shared(Shape::kBarriers + slot * kStageBytes); }

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

  // By the last warpgroup. Weights may come before what earlier kernels wrote.
  JUNO_GPU void fill(const Weight& w, int first_row) const {
    StageFetch<F, Shape::kRows, Shape::kFetchers> weights(w, first_row, first, thread() - Shape::kConsumers);
    ActivationFetch<Shape> activations(a, first, warp() - Shape::kConsumers / kWarp);
    const int early = first + kStages < end ? first + kStages : end;
    for (int stage = first; stage < early; ++stage) weights.fetch(slot_at(stage - first) + Shape::kW, stage);
    wait_dependency();
    for (int stage = first; stage < early; ++stage) {
      activations.fetch(*full(stage - first), slot_at(stage - first));
      copies_arrive(*full(stage - first));
    }
    int slot = 0, round = 0;
    JUNO_UNROLL_BY(1)
    for (int stage = early; stage < end; ++stage) {
      empty(slot)->wait(round & 1);
      activations.fetch(*full(slot), slot_at(slot));
      weights.fetch(slot_at(slot) + Shape::kW, stage);
      copies_arrive(*full(slot));
      if (++slot == kStages) slot = 0, ++round;
    }
  }
};

// What a thread adds up: the open group, and the tree over the groups that are done.
template <class Shape>
struct GroupSums {
  static constexpr int kSums = Shape::kSums;

  float open[kSums] = {};
  float level[Shape::kLevels > 0 ? Shape::kLevels : 1][kSums];
  Floats4* parked;  // [levels, sums / 4, threads]
  int done = 0, edge, first, groups, blocks, first_block;

  JUNO_GPU GroupSums(int part, int splits, int blocks_, Floats4* parked_)
      : parked(parked_), first(part * (8 / splits)), groups(8 / splits), blocks(blocks_) {
    first_block = static_cast<int>(quant::group_begin(first, blocks));
    edge = static_cast<int>(quant::group_begin(first + 1, blocks));
  }

  // Blocks before `block` are in.
  JUNO_GPU void close_groups(int block) {
    JUNO_UNROLL_BY(1)
    while (done < groups && block == edge) {
      fold<0>();
      if (++done < groups) {
        JUNO_UNROLL
        for (float& sum : open) sum = 0;
      }
      edge = static_cast<int>(quant::group_begin(first + done + 1, blocks));
    }
  }

 private:
  // The open group goes into the tree from level kLevel on; what is complete meets its neighbour.
  template <int kLevel>
  JUNO_GPU void fold() {
    if constexpr (kLevel < Shape::kDepth) {
      constexpr bool kNear = kLevel < Shape::kLevels;
      float(&near)[kSums] = level[kNear ? kLevel : 0];
      Floats4* far = parked + (kLevel - Shape::kLevels) * (kSums / 4) * Shape::kConsumers;
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
JUNO_GPU void scale_in(float (&sums)[kSums], const float (&c)[kSums], const float (&row)[2], const float* d) {
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

// c (+)= step `step` of the weights. Half of the words are loaded once the first half is being multiplied, so
// that the compiler makes them meanwhile. `first`: the step's first 16 elements in the stage.
template <class Shape, class Weights>
JUNO_GPU Weights multiply_words(float (&c)[Shape::kSums], const unsigned char* in, int row, int step,
                                bool fresh, float (&scale)[2]) {
  constexpr int kSteps = Weights::kUnit / 16, kHalf = (Weights::kWords + 1) / 2;
  const int first = step % (kStageDepth / Weights::kUnit) * kSteps;
  uint32_t fragments[Weights::kWords][2 * Weights::kParts][4];
  Weights weights;
  JUNO_UNROLL
  for (int half = 0; half < Weights::kWords; half += kHalf) {
    weights.template load<Shape::kRows>(in + Shape::kW, row, step);
    JUNO_UNROLL
    for (int w = half; w < half + kHalf; ++w) weights.expand(w, fragments[w], scale);
    products_begin();
    JUNO_UNROLL
    for (int i = 0; i < 2 * Weights::kParts * kHalf; ++i)
      multiply(c, fragments[half + i / (2 * Weights::kParts)][i % (2 * Weights::kParts)], in,
               2 * (first + 2 * (half + i / (2 * Weights::kParts)) + i % 2), fresh && half == 0 && i == 0);
  }
  products_end();
  return weights;
}

// One step of kUnit elements of K: exact sums c, which at the end of a unit (docs/numerics.md) meet their
// scales; after a block's last unit its minimum.
template <class F, int kUnit, class Shape>
JUNO_GPU void multiply_step(const ManyArgs& a, const unsigned char* in, int row, int step,
                            float (&c)[Shape::kSums], GroupSums<Shape>& sums) {
  using Weights = Fragments<F, kUnit>;
  constexpr bool kApart = Weights::kMinima && Shape::kApart;
  const int unit = quant::kUnit<F> < a.block ? quant::kUnit<F> : a.block;  // all of these are powers of two
  const int at = step % (kStageDepth / kUnit), block = at * kUnit >> log2_of_block(a);  // in the stage
  const bool ends_unit = quant::kUnit<F> == kUnit || ((at + 1) * kUnit & (unit - 1)) == 0;
  const bool ends_block = kUnit == kStageDepth || ((at + 1) * kUnit & (a.block - 1)) == 0;
  const float* d = reinterpret_cast<const float*>(in + Shape::kD) + block * Shape::kTokens + lane() % 4 * 2;
  float scale[2], minimum_scale[2], low[kApart ? Shape::kSums : 1];
  uint32_t minima[2];
  const bool fresh = quant::kUnit<F> == kUnit || (at * kUnit & (unit - 1)) == 0;
  const Weights weights = multiply_words<Shape, Weights>(c, in, row, step, fresh, scale);
  if constexpr (Weights::kMinima)
    weights.minima(step / (kStageDepth / kUnit), lane() % 4 * 32 >> log2_of_block(a) == block, minima,
                   minimum_scale);
  if constexpr (kApart) {
    products_begin();
    multiply_half(low, minima, in + Shape::kH);
    products_end();
    products_wait<1>(c);
  } else {
    products_wait<0>(c);
  }
  if (ends_unit) scale_in(sums.open, c, scale, d);
  if constexpr (Weights::kMinima) {
    if constexpr (kApart) {
      products_wait<0>(low);
      if (ends_block) scale_in(sums.open, low, minimum_scale, d);
    } else if (ends_block) {
      products_begin();
      multiply_half(c, minima, in + Shape::kH);
      products_end();
      products_wait<0>(c);
      scale_in(sums.open, c, minimum_scale, d);
    }
  }
}

// A whole stage of units that have no minima, inside one group: while a unit's sums meet their
// scales the next unit's are under way.
template <class F, int kUnit, class Shape>
JUNO_GPU void multiply_stage(const ManyArgs& a, const unsigned char* in, int row, int stage,
                             GroupSums<Shape>& sums) {
  using Weights = Fragments<F, kUnit>;
  constexpr int kUnits = kStageDepth / kUnit;
  float c[2][Shape::kSums], scale[2][2];
  const float* d = reinterpret_cast<const float*>(in + Shape::kD) + lane() % 4 * 2;
  JUNO_UNROLL
  for (int i = 0; i <= kUnits; ++i) {
    if (i < kUnits) {
      multiply_words<Shape, Weights>(c[i % 2], in, row, stage * kUnits + i, true, scale[i % 2]);
    }
    if (i == 0) continue;
    if (i < kUnits) products_wait<1>(c[1 - i % 2]);
    else products_wait<0>(c[1 - i % 2]);
    scale_in(sums.open, c[1 - i % 2], scale[1 - i % 2],
             d + ((i - 1) * kUnit >> log2_of_block(a)) * Shape::kTokens);
  }
}

// The sums of a block's tile, finished, [tokens, kPitch], where the stages were.
template <class Shape>
JUNO_GPU void lay_tile(float* tile, const float (&sums)[Shape::kSums], int row) {
  JUNO_UNROLL
  for (int j = 0; j < Shape::kTiles; ++j) {
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i)
      tile[(8 * j + lane() % 4 * 2 + i % 2) * Shape::kPitch + row + i / 2 * 8] = sums[4 * j + i];
  }
}

JUNO_GPU int tile_of_block() { return block_y() * blocks_x() + block_x(); }

// Values of a finished tile: as it is, or the upper tree over what the blocks that share it have left.
template <class Shape>
struct Finished {
  static constexpr int kTile = Shape::kTokens * Shape::kRows;
  const float* tile;
  const float* parts;  // [splits, tokens, rows]
  int splits;

  JUNO_GPU float at(int token, int row) const {
    if (splits == 1) return tile[token * Shape::kPitch + row];
    float x[8];
    JUNO_UNROLL
    for (int s = 0; s < 8; ++s) x[s] = s < splits ? parts[s * kTile + token * Shape::kRows + row] : 0.0f;
    JUNO_UNROLL
    for (int n = 8; n > 1; n /= 2) {
      JUNO_UNROLL
      for (int i = 0; i < n / 2; ++i)
        if (n <= splits) x[i] = x[2 * i] + x[2 * i + 1];
    }
    return x[0];
  }
};

// y[token, row] from a tile; under int8x2 two neighbouring rows of activations are one token.
template <class Shape>
JUNO_GPU void store_tile(const ManyArgs& a, const MatvecPart& part, const Finished<Shape>& tile,
                         int first_row) {
  const int first = block_x() * Shape::kTokens, left = a.rows - first;
  const int tokens = (left < Shape::kTokens ? left : Shape::kTokens) / a.planes;
  JUNO_UNROLL_BY(4)
  for (int e = thread(); e < tokens * Shape::kRows; e += Shape::kConsumers) {
    const int t = e / Shape::kRows, row = e % Shape::kRows, o = first_row + row;
    if (o >= part.weight.rows) continue;
    float y = tile.at(t * a.planes, row);
    if (a.planes == 2) y = y + tile.at(2 * t + 1, row);
    const int64_t at = int64_t{first / a.planes + t} * part.y_stride + o;
    if (part.bias) y = y + part.bias[o];
    if (a.residual) y = a.residual[at] + y;
    part.y[at] = y;
  }
}

// The part that a block works for, and its tile of that part's rows.
template <class Shape>
JUNO_GPU MatvecPart part_of_block(const ManyArgs& a, int& tile) {
  MatvecPart part = a.parts[0];
  JUNO_UNROLL
  for (int i = 1; i < 3; ++i) {
    const int tiles = (part.weight.rows + Shape::kRows - 1) / Shape::kRows;
    if (i >= a.part_count || tile < tiles) break;
    tile -= tiles;
    part = a.parts[i];
  }
  return part;
}

// Leaves a tile for the block that comes last to it; true there.
template <class Shape>
JUNO_GPU bool leave_tile(const ManyArgs& a, const Finished<Shape>& tile, uint32_t* last) {
  constexpr int kTile = Shape::kTokens * Shape::kRows;
  float* to = a.partial + (int64_t{tile_of_block()} * a.splits + block_z()) * kTile;
  JUNO_UNROLL_BY(4)
  for (int e = thread(); e < kTile; e += Shape::kConsumers)
    to[e] = tile.tile[e / Shape::kRows * Shape::kPitch + e % Shape::kRows];
  fence();
  barrier();
  if (thread() == 0) {
    uint32_t* arrived = a.arrived + tile_of_block();
    *last = atomic_add(arrived, 1) + 1 == static_cast<uint32_t>(a.splits);
    if (*last) *arrived = 0;
  }
  barrier();
  fence();
  return *last;
}

// Grid: (tiles of activation rows, tiles of all parts' weight rows, splits). kUnit elements of K are a step:
// the format's unit, or 32.
template <class F, int kUnit, class Shape>
JUNO_GPU void multiply_many(const ManyArgs& a) {
  constexpr int kPerStage = kStageDepth / kUnit;
  constexpr bool kWhole =
      kPerStage > 1 && quant::kUnit<F> == kUnit && !Fragments<F, kUnit>::kMinima && Shape::kApart;
  int row_tile = block_y();
  const MatvecPart part = part_of_block<Shape>(a, row_tile);
  const int per_block = a.block / kUnit;
  GroupSums<Shape> sums(block_z(), a.splits, a.k / a.block,
                        shared<Floats4>(Ring<F, Shape>::kParked) + thread() % Shape::kConsumers);
  const int first = sums.first_block * per_block;
  const int end = static_cast<int>(quant::group_begin(sums.first + sums.groups, sums.blocks)) * per_block;
  const Ring<F, Shape> ring{a, first / kPerStage, (end + kPerStage - 1) / kPerStage};
  ring.init();
  auto* last = reinterpret_cast<uint32_t*>(shared(Shape::kBarriers - 16));
  if (thread() >= Shape::kConsumers) {
    keep_registers<Shape::kFetchRegisters>();
    ring.fill(part.weight, row_tile * Shape::kRows);
    for (int i = 0; i < (a.splits > 1 ? 4 : 2); ++i) barrier();  // those of the others
    return;
  }
  take_registers<Shape::kRegisters>();
  const int row = warp() * 16 + lane() / 4;
  sums.close_groups(sums.first_block);
  int slot = 0, round = 0;
  JUNO_UNROLL_BY(1)
  for (int stage = ring.first; stage < ring.end; ++stage) {
    ring.full(slot)->wait(round & 1);
    tiles_fetched();
    const unsigned char* in = ring.slot_at(slot);
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
    warp_barrier();
    if (lane() == 0) ring.empty(slot)->arrive();
    if (++slot == Ring<F, Shape>::kStages) slot = 0, ++round;
  }
  wait_dependency();
  barrier();  // all stages have been read
  lay_tile<Shape>(shared<float>(Shape::kBarriers), sums.open, row);
  barrier();
  const Finished<Shape> tile{shared<float>(Shape::kBarriers),
                             a.partial + int64_t{tile_of_block()} * a.splits * Shape::kTokens * Shape::kRows,
                             a.splits};
  if (a.splits > 1 && !leave_tile<Shape>(a, tile, last)) return;
  store_tile<Shape>(a, part, tile, row_tile * Shape::kRows);
}

}  // namespace juno::gpu
