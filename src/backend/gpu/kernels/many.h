// SPDX-License-Identifier: Apache-2.0
// Products of many tokens with integer weights (docs/numerics.md §3) on tensor cores: weights become integers
// in halves in registers, activations wait in shared memory, and every scale meets an exact integer sum.
// Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/fragments.h"
#include "backend/gpu/kernels/panels.h"
#include "quant/dot.h"

namespace juno::gpu {

// The ring of stages of one set of activations, filled by the first of its warps; its warpgroups empty it,
// each at its own pace.
template <class Shape>
struct Ring {
  static constexpr int kThreads = 128 * Shape::kRowGroups;
  static constexpr int kAhead = Shape::kStages > 2 ? Shape::kStages - 2 : 1;

  const ManyArgs& a;
  Arrivals *full, *empty;
  unsigned char* stages;
  int thread, first, end;  // of this ring's threads; stages of K

  JUNO_GPU Ring(const ManyArgs& args, int which, int thread_, int first_, int end_)
      : a(args),
        full(shared<Arrivals>() + which * 2 * Shape::kStages),
        empty(full + Shape::kStages),
        stages(shared(Shape::kBarriers + which * Shape::kStages * Shape::kStageBytes)),
        thread(thread_),
        first(first_),
        end(end_) {}

  JUNO_GPU void init() const {
    if (thread != 0) return;
    for (int i = 0; i < Shape::kStages; ++i) {
      full[i].init(kFetchArrivals);
      empty[i].init(kThreads / kWarp);
    }
  }

  JUNO_GPU void fill(int stage) const {
    if (thread >= kWarp || stage >= end) return;
    const int turn = stage - first, slot = turn % Shape::kStages, round = turn / Shape::kStages;
    if (round > 0) empty[slot].wait((round - 1) & 1);
    fetch_stage(full[slot], stages + slot * Shape::kStageBytes, stage);
  }
  JUNO_GPU const unsigned char* wait(int stage) const {
    const int turn = stage - first, slot = turn % Shape::kStages;
    full[slot].wait(turn / Shape::kStages & 1);
    tiles_fetched();
    return stages + slot * Shape::kStageBytes;
  }
  JUNO_GPU void release(int stage) const {
    warp_barrier();
    if (lane() == 0) empty[(stage - first) % Shape::kStages].arrive();
  }

 private:
  // Together with the rows behind the last ones, up to a panel's end.
  JUNO_GPU void fetch_stage(Arrivals& landed, unsigned char* to, int stage) const {
    constexpr int kTaken = Shape::kTiles < 8 ? Shape::kTiles : 8;  // groups of eight rows, of a panel
    const int blocks = kStageDepth / a.block;
    const int64_t rows = padded_to(a.rows, kPanelRows);
    const int panels = static_cast<int>(rows / kPanelRows), group = block_x() * Shape::kTiles;
    fetch_begin(landed, Shape::kD + blocks * Shape::kTokens * 4);
    JUNO_UNROLL
    for (int part = 0; part < Shape::kTiles; part += kTaken) {
      const int wanted = (group + part) / 8, panel = wanted < panels ? wanted : panels - 1;
      const int64_t at = panel * panel_stages(a.k) + stage;
      const auto* q = reinterpret_cast<const unsigned char*>(a.x.q) + at * kPanelStage + group % 8 * 1024;
      if (Shape::kTiles == 8) {
        fetch(landed, to, q, kPanelStage);
      } else {
        fetch(landed, to + part * 1024, q, kTaken * 1024);
        fetch(landed, to + (Shape::kTiles + part) * 1024, q + kPanelStage / 2, kTaken * 1024);
      }
      fetch(landed, to + Shape::kH + part * 128,
            reinterpret_cast<const unsigned char*>(a.x.h) + at * kPanelSums + group % 8 * 128, kTaken * 128);
      for (int block = 0; block < blocks; ++block)
        fetch(landed, to + Shape::kD + (block * Shape::kTokens + part * 8) * 4,
              a.x.d + (static_cast<int64_t>(stage) * blocks + block) * rows + panel * kPanelRows +
                  group % 8 * 8,
              kTaken * 32);
    }
    fetch_end(landed);
  }
};

// What a thread adds up: the open group, and the tree over the groups that are done.
template <class Shape>
struct GroupSums {
  static constexpr int kSums = Shape::kSums;

  float open[kSums] = {};
  float level[Shape::kLevels > 0 ? Shape::kLevels : 1][kSums];
  float* parked;  // [levels, sums, threads]
  int done = 0, edge, first, blocks, first_block;

  JUNO_GPU GroupSums(int first_group, int blocks_)
      : parked(shared<float>(Shape::kBarriers + Shape::kSplit * Shape::kStages * Shape::kStageBytes) +
               gpu::thread()),
        first(first_group),
        blocks(blocks_) {
    first_block = static_cast<int>(quant::group_begin(first, blocks));
    edge = static_cast<int>(quant::group_begin(first + 1, blocks));
  }

  JUNO_GPU int end_block() const {
    return static_cast<int>(quant::group_begin(first + Shape::kGroups, blocks));
  }

  // Blocks before `block` are in.
  JUNO_GPU void close_groups(int block) {
    while (done < Shape::kGroups && block == edge) {
      fold<0>();
      if (++done < Shape::kGroups) {
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
      float* far = parked + (kLevel - Shape::kLevels) * kSums * Shape::kThreads;
      if ((done >> kLevel & 1) == 0) {
        JUNO_UNROLL
        for (int i = 0; i < kSums; ++i) {
          if (kNear) near[i] = open[i];
          else far[i * Shape::kThreads] = open[i];
        }
      } else {
        JUNO_UNROLL
        for (int i = 0; i < kSums; ++i) open[i] = (kNear ? near[i] : far[i * Shape::kThreads]) + open[i];
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

// One step of kUnit elements of K: exact sums c, which at the end of a unit (docs/numerics.md) meet their
// scales; after a block's last unit its minimum.
template <class F, class Weights, class Shape>
JUNO_GPU void multiply_step(const ManyArgs& a, const Weights& weights, const unsigned char* in, int step,
                            float (&c)[Shape::kSums], GroupSums<Shape>& sums) {
  constexpr int kUnit = Weights::kUnit, kSteps = kUnit / 16;
  constexpr bool kApart = Weights::kMinima && Shape::kMinimaApart;
  const int unit = quant::kUnit<F> < a.block ? quant::kUnit<F> : a.block;  // all of these are powers of two
  const int at = step % (kStageDepth / kUnit), block = at * kUnit >> log2_of_block(a);  // in the stage
  const bool ends_unit = quant::kUnit<F> == kUnit || ((at + 1) * kUnit & (unit - 1)) == 0;
  const bool ends_block = ((at + 1) * kUnit & (a.block - 1)) == 0;
  const float* d = reinterpret_cast<const float*>(in + Shape::kD) + block * Shape::kTokens + lane() % 4 * 2;
  float scale[2], minimum_scale[2], low[kApart ? Shape::kSums : 1];
  uint32_t fragments[Weights::kParts * kSteps][4], minima[2];
  weights.expand(fragments, scale);
  if constexpr (Weights::kMinima)
    weights.minima(step / (kStageDepth / kUnit), lane() % 4 * 32 >> log2_of_block(a) == block, minima,
                   minimum_scale);
  const bool fresh = quant::kUnit<F> == kUnit || (at * kUnit & (unit - 1)) == 0;
  products_begin();
  JUNO_UNROLL
  for (int i = 0; i < Weights::kParts * kSteps; ++i)
    multiply(c, fragments[i], in, 2 * (at * kSteps + i % kSteps), fresh && i == 0);
  products_end();
  if constexpr (kApart) {
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

// y[token, row] from the sums; under int8x2 two neighbouring rows of activations are one token.
template <class Shape>
JUNO_GPU void store_tile(const ManyArgs& a, const MatvecPart& part, const float (&sums)[Shape::kSums],
                         int row) {
  JUNO_UNROLL
  for (int j = 0; j < Shape::kTiles; ++j) {
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int x = block_x() * Shape::kTokens + 8 * j + lane() % 4 * 2 + i % 2, o = row + i / 2 * 8;
      if (x >= a.rows || o >= part.weight.rows) continue;
      float y = sums[4 * j + i];
      int64_t token = x;
      if (a.planes == 2) {
        if (i % 2 == 1) continue;
        y = y + sums[4 * j + i + 1];
        token = x / 2;
      }
      if (part.bias) y = y + part.bias[o];
      if (a.residual) y = a.residual[token * part.y_stride + o] + y;
      part.y[token * part.y_stride + o] = y;
    }
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

// The warpgroups' subtrees, added up as the upper tree.
template <class Shape>
JUNO_GPU void join_splits(GroupSums<Shape>& sums, int split) {
  JUNO_UNROLL
  for (int i = 0; i < Shape::kSums; ++i) sums.parked[i * Shape::kThreads] = sums.open[i];
  barrier();
  if (split != 0) return;
  JUNO_UNROLL
  for (int i = 0; i < Shape::kSums; ++i) {
    float parts[Shape::kSplit];
    JUNO_UNROLL
    for (int s = 0; s < Shape::kSplit; ++s)
      parts[s] = sums.parked[i * Shape::kThreads + s * Ring<Shape>::kThreads];
    sums.open[i] = quant::neighbour_tree(parts, Shape::kSplit);
  }
}

// Grid: (tiles of activation rows, tiles of all parts' weight rows). kUnit elements of K are a step: the
// format's unit, or 32.
template <class F, int kUnit, class Shape>
JUNO_GPU void multiply_many(const ManyArgs& a) {
  constexpr int kPerStage = kStageDepth / kUnit;
  const int group = warp() / 4, split = group / Shape::kRowGroups;
  int tile = block_y();
  const MatvecPart part = part_of_block<Shape>(a, tile);
  const int row = (tile * Shape::kRowGroups + group % Shape::kRowGroups) * 64 + warp() % 4 * 16 + lane() / 4;
  const int per_block = a.block / kUnit;
  GroupSums<Shape> sums(split * Shape::kGroups, a.k / a.block);
  const int first = sums.first_block * per_block, end = sums.end_block() * per_block;
  const int first_stage = first / kPerStage;
  // Without steps nothing is fetched: nobody would wait for it.
  const Ring<Shape> ring(a, split, thread() - split * Ring<Shape>::kThreads, first_stage,
                         first < end ? (end + kPerStage - 1) / kPerStage : first_stage);
  Fragments<F, kUnit> weights(part.weight, row);
  ring.init();
  barrier();
  if (first < end) weights.load(first);
  wait_dependency();
  for (int i = 0; i < Ring<Shape>::kAhead; ++i) ring.fill(first_stage + i);
  sums.close_groups(sums.first_block);
  const unsigned char* in = nullptr;
  float c[Shape::kSums];
  for (int step = first; step < end; ++step) {
    const int stage = step / kPerStage;
    if (step == first || step % kPerStage == 0) {
      ring.fill(stage + Ring<Shape>::kAhead);
      in = ring.wait(stage);
    }
    const Fragments<F, kUnit> now = weights;
    if (step + 1 < end) weights.load(step + 1);
    multiply_step<F>(a, now, in, step, c, sums);
    if (((step + 1) & (per_block - 1)) == 0) sums.close_groups((step + 1) * kUnit >> log2_of_block(a));
    if (step + 1 == end || (step + 1) % kPerStage == 0) ring.release(stage);
  }
  if constexpr (Shape::kSplit > 1) join_splits(sums, split);
  if (split == 0) store_tile<Shape>(a, part, sums.open, row);
}

}  // namespace juno::gpu
