// SPDX-License-Identifier: Apache-2.0
// One to eight rows of activations times integer weights (docs/numerics.md §3). A warp has four rows of the
// weight at a time, lane 4g + r group g of row r. What a lane reads next is on its way to a ring of its own
// in shared memory: it costs no registers, needs no barrier, and may come while the launch before still runs.
#pragma once
#include "backend/gpu/kernels/cell.h"
#include "backend/gpu/kernels/in_shared.h"
#include "backend/gpu/kernels/matvec_out.h"
#include "backend/gpu/kernels/record.h"
#include "quant/dot.h"

namespace juno::gpu {

// Steps are four cells of a group, with activation blocks of kBlock elements.
template <class F, int kBlock>
struct RingShape {
  static constexpr int kCells = kBlock / kCell;  // of a block
  static constexpr int kBlocks = 4 / kCells;     // of a step

  static constexpr bool is_long(int p) { return Layout<F>::planes().at[p].elements != kCell; }
  JUNO_BOTH static constexpr int piece(int p) {
    const int bytes = Layout<F>::planes().at[p].bytes;
    return bytes < 4 ? kStrip * bytes : bytes;
  }
  JUNO_BOTH static constexpr int units(int p) { return is_long(p) ? kBlocks : 4; }
  JUNO_BOTH static constexpr int offset(int p) {
    int at = 0;
    for (int i = 0; i < p; ++i) at += units(i) * piece(i) * kWarp;
    return at;
  }
  static constexpr int kStepBytes = offset(kPlaneCount<F>);
  // Steps under way in a ring of so many times kRingBytes.
  JUNO_BOTH static constexpr int depth(int times) {
    const int fits = times * kRingBytes / kStepBytes;
    return fits < 8 ? fits : 8;
  }
  static_assert(kRingBytes >= kStepBytes);
};

// A lane's view of a step: units of 4 bytes and more are its own, of smaller ones it has those of the strip's
// four rows.
template <class Shape>
struct RingView {
  const unsigned char* slot;
  int block;  // of the step
};
template <class F, int p, class Shape>
JUNO_GPU Staged unit(const RingView<Shape>& view, int i) {
  constexpr int kPiece = Shape::piece(p), kBytes = Layout<F>::planes().at[p].bytes;
  const int at = Shape::is_long(p) ? view.block : i;
  const unsigned char* const from = view.slot + Shape::offset(p) + (at * kWarp + lane()) * kPiece;
  return {kBytes < kPiece ? from + lane() % kStrip * kBytes : from};
}

// The strips of neighbouring parts of one format that a warp has, by their number among all: first, first +
// stride …
struct Share {
  int part, parts, first, stride, items;  // items: under kGated two a strip
  int pair, expert;
};

// Where a lane reads next.
struct RingCursor {
  LanePlanes planes;
  int item, first;  // first: the step's first block
  int slot, left;   // left: steps that have not been asked for
};

template <class F, int kBlock, int kRows>
class RowRing {
  using Shape = RingShape<F, kBlock>;
  using L = Layout<F>;
  static constexpr int kUnitCells = (quant::kUnit<F> < kBlock ? quant::kUnit<F> : kBlock) / kCell;

 public:
  JUNO_GPU RowRing(const MatvecArgs& a, const Share& share)
      : a_(a),
        share_(share),
        twice_(a.epilogue == Epilogue::kGated ? 2 : 1),
        depth_(Shape::depth(a.ring_times)),
        row_bytes_(record_row_bytes(a.k, kBlock)) {
    const int blocks = a.k / kBlock, group = lane() / kStrip;
    begin_ = static_cast<int>(quant::group_begin(group, blocks));
    end_ = static_cast<int>(quant::group_begin(group + 1, blocks));
    steps_ = ((blocks + 7) / 8 + Shape::kBlocks - 1) / Shape::kBlocks;
  }

  // Asks for the first steps.
  JUNO_GPU RingCursor fill() const {
    RingCursor next{.item = -1, .first = end_of_item(), .slot = 0, .left = share_.items * steps_};
    JUNO_UNROLL_BY(1)
    for (int i = 0; i < depth_; ++i) ask(next);
    return next;
  }

  JUNO_GPU void run(RingCursor next) const {
    const unsigned char* const records = shared() + kRecordsAt + 16 * (lane() / kStrip);
    float kept = 0;
    JUNO_UNROLL_BY(1)
    for (int item = 0; item < share_.items; ++item) {
      int row = 0;
      const Job job{.part = place(item, row), .pair = share_.pair};
      if (kRows == 1 && twice_ == 1) kept = residual_of(a_, job, row);
      float acc[kRows] = {};
      JUNO_UNROLL_BY(1)
      for (int step = 0; step < steps_; ++step) {
        wait_step();
        JUNO_UNROLL
        for (int b = 0; b < Shape::kBlocks; ++b) {
          const int block = begin_ + step * Shape::kBlocks + b;
          if (block < end_) add_block(acc, {slot_at(next.slot), b}, block, records);
        }
        ask(next);
      }
      JUNO_UNROLL
      for (int t = 0; t < kRows; ++t) acc[t] = group_tree(acc[t], kStrip);
      finish(a_, job, Place{row, lane() / kStrip, item % twice_}, acc, kept);
    }
  }

 private:
  JUNO_GPU unsigned char* slot_at(int slot) const {
    return shared(
        static_cast<size_t>(a_.ring_at + warp() * a_.ring_times * kRingBytes + slot * Shape::kStepBytes));
  }
  // Until the oldest step that was asked for has come. One text of all else serves both lengths of a ring.
  JUNO_GPU void wait_step() const {
    if (a_.ring_times == 2) copies_wait<Shape::depth(2) - 1>();
    else copies_wait<Shape::depth(1) - 1>();
  }
  JUNO_GPU int end_of_item() const { return begin_ + steps_ * Shape::kBlocks; }

  // -> the part of an item, and the lane's row there.
  JUNO_GPU int place(int item, int& row) const {
    int part = share_.part, strip = share_.first + item / twice_ * share_.stride;
    JUNO_UNROLL_BY(1)
    for (int i = 1; i < share_.parts; ++i, ++part) {
      const int strips = (a_.parts[part].weight.rows + kStrip - 1) / kStrip;
      if (strip < strips) break;
      strip -= strips;
    }
    row = strip * kStrip + lane() % kStrip;
    return part;
  }

  // The next step, a commit; only that when all have been asked for.
  JUNO_GPU void ask(RingCursor& next) const {
    if (next.left > 0) {
      if (next.first == end_of_item()) {
        int row = 0;
        const int part = place(++next.item, row);
        const Weight& w = a_.parts[part + next.item % twice_].weight;
        next.planes = lane_planes<F>(w.data + static_cast<uint64_t>(share_.expert) * w.plane_bytes, w.rows,
                                     w.cols, row);
        next.first = begin_;
      }
      copy_planes(next, slot_at(next.slot));
      next.first += Shape::kBlocks;
      --next.left;
    }
    if (++next.slot == depth_) next.slot = 0;
    copies_commit();
  }
  // Blocks from the group's end on are copied in vain.
  template <int p = 0>
  JUNO_GPU void copy_planes(const RingCursor& next, unsigned char* slot) const {
    if constexpr (p < kPlaneCount<F>) {
      constexpr int kPiece = Shape::piece(p), kBytes = L::planes().at[p].bytes, kUnits = Shape::units(p);
      JUNO_UNROLL
      for (int u = 0; u < kUnits; ++u) {
        const int block = next.first + u * Shape::kBlocks / kUnits;
        const int there = block < end_ ? block : end_ > 0 ? end_ - 1 : 0;
        const int cell = there * Shape::kCells + (Shape::is_long(p) ? 0 : u % Shape::kCells);
        const uint8_t* from = unit<F, p>(next.planes, cell / (L::planes().at[p].elements / kCell));
        if (kBytes < kPiece) from -= lane() % kStrip * kBytes;
        copy_async<kPiece>(slot + Shape::offset(p) + (u * kWarp + lane()) * kPiece, from);
      }
      copy_planes<p + 1>(next, slot);
    }
  }

  JUNO_GPU void add_block(float (&acc)[kRows], const RingView<Shape>& view, int block,
                          const unsigned char* records) const {
    const unsigned char* const record = records + block * record_bytes(kBlock);
    const auto head = L::head(view, block * Shape::kCells);
    Scales scales;
    int sum[kRows] = {}, minima[kRows] = {};
    JUNO_UNROLL
    for (int j = 0; j < Shape::kCells; ++j) {
      const auto raw = L::load(view, view.block * Shape::kCells + j);
      if (j == 0) scales = L::scales(head, raw, block * Shape::kCells);
      uint32_t w[8];
      L::words(raw, w);
      JUNO_UNROLL
      for (int t = 0; t < kRows; ++t) {
        const unsigned char* const at = record + t * row_bytes_;
        const auto* q = reinterpret_cast<const Quad32*>(at + j * kCell);
        const Quad32 low = q[0], high = q[1];
        const uint32_t x[8] = {low.x[0],  low.x[1],  low.x[2],  low.x[3],
                               high.x[0], high.x[1], high.x[2], high.x[3]};
        const uint32_t h = reinterpret_cast<const uint32_t*>(at + kBlock)[j];
        sum[t] += cell_product<F>(w, scales, j, x, h);
        minima[t] = cell_minimum<F>(scales, j, h, minima[t]);
        if ((j + 1) % kUnitCells != 0) continue;
        const float dx = *reinterpret_cast<const float*>(at + kBlock + kBlock / 8);
        acc[t] = fma(scales.d * dx, static_cast<float>(sum[t]), acc[t]);
        sum[t] = 0;
        if (quant::HasMin<F> && j + 1 == Shape::kCells)
          acc[t] = fma(scales.m * dx, static_cast<float>(minima[t]), acc[t]);
      }
    }
  }

  const MatvecArgs& a_;
  const Share& share_;
  const int twice_, depth_, row_bytes_;
  int begin_, end_, steps_;
};

}  // namespace juno::gpu
