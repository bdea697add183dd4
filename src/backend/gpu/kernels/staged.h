// SPDX-License-Identifier: Apache-2.0
// Weights on their way through shared memory: what a tile of rows has of one stage of K, plane after plane,
// in the order of layout.h. Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/in_shared.h"
#include "backend/gpu/kernels/prompt_shapes.h"
#include "backend/gpu/kernels/tiles.h"

namespace juno::gpu {

// Of plane p in a stage: units of a row, bytes of a strip, and where the plane begins in a tile of `rows`.
template <class F>
JUNO_BOTH constexpr int staged_units(int p) {
  return Layout<F>::planes().at[p].elements == kCell ? kStageDepth / kCell : 1;
}
template <class F>
JUNO_BOTH constexpr int staged_strip(int p) {
  return staged_units<F>(p) * kStrip * Layout<F>::planes().at[p].bytes;
}
template <class F>
JUNO_BOTH constexpr int staged_offset(int p, int rows) {
  int at = 0;
  for (int i = 0; i < p; ++i) at += rows / kStrip * staged_strip<F>(i);
  return (at + 15) / 16 * 16;
}

// A row's view of a stage, or the view of the row eight further. Cells count from the block of 256 in which
// the stage lies.
template <int kRows, int kFurther>
struct StagedRow {
  const unsigned char* tile;
  uint32_t row;
};
template <class F, int p, int kRows, int kFurther>
JUNO_GPU Staged unit(const StagedRow<kRows, kFurther>& row, int i) {
  constexpr int kBytes = Layout<F>::planes().at[p].bytes, kUnits = staged_units<F>(p);
  constexpr int kOffset = staged_offset<F>(p, kRows) + kFurther / kStrip * staged_strip<F>(p);
  return {row.tile + row.row / kStrip * staged_strip<F>(p) + row.row % kStrip * kBytes +
          i % kUnits * (kStrip * kBytes) + kOffset};
}

// One of kFetchers threads' part of bringing the planes from p on, stage after stage: pieces of 16 bytes, or
// what a strip has of a unit. All addresses are worked out before, so that a stage costs little more than its
// copies.
template <class F, int kRows, int kFetchers, int p = 0>
struct StageFetch {
  static constexpr Plane kPlane = Layout<F>::planes().at[p];
  static constexpr int kUnitBytes = kStrip * kPlane.bytes, kPiece = kUnitBytes < 16 ? kUnitBytes : 16;
  static constexpr int kPieces = staged_strip<F>(p) / kPiece;  // of a strip
  static constexpr int kSteps = (kRows / kStrip * kPieces + kFetchers - 1) / kFetchers;
  static constexpr bool kLong = kPlane.elements > kStageDepth;  // a unit serves two stages

  const uint8_t* from;
  int64_t stride;   // from one copy of a stage to the next
  int pieces;       // of the tile and of the rows that there are, from this thread's first one on
  int unit, units;  // the next copy's, and of a row
  int to;
  StageFetch<F, kRows, kFetchers, p + 1> rest;

  JUNO_GPU StageFetch(const Weight& w, int first_row, int stage, int thread)
      : units(w.cols / kPlane.elements),
        to(staged_offset<F>(p, kRows) + thread * kPiece),
        rest(w, first_row, stage, thread) {
    const int strips = (w.rows + kStrip - 1) / kStrip, strip = first_row / kStrip + thread / kPieces;
    const int64_t strip_bytes = int64_t{units} * kUnitBytes;
    const int of_stage = kLong ? stage / (kPlane.elements / kStageDepth) : stage * staged_units<F>(p);
    unit = of_stage + thread % kPieces * kPiece / kUnitBytes;
    from = w.data + plane_offset<F>(p, w.rows, w.cols) + strip * strip_bytes +
           int64_t{of_stage} * kUnitBytes + thread % kPieces * kPiece;
    stride = kFetchers / kPieces * strip_bytes;
    const int of_tile = kRows / kStrip * kPieces - thread, there = (strips - strip) * kPieces;
    pieces = there < of_tile ? there : of_tile;
  }

  // Copies `stage` and goes on to the next one.
  JUNO_GPU void fetch(unsigned char* tile, int stage) {
    if (unit < units) {
      const uint8_t* at = from;
      JUNO_UNROLL
      for (int i = 0; i < kSteps; ++i, at += stride)
        if (i * kFetchers < pieces) copy_async<kPiece>(tile + to + i * kFetchers * kPiece, at);
    }
    if (!kLong || stage % 2 == 1) {
      from += staged_units<F>(p) * kUnitBytes;
      unit += staged_units<F>(p);
    }
    rest.fetch(tile, stage);
  }
};
template <class F, int kRows, int kFetchers, int p>
requires(p == kPlaneCount<F>) struct StageFetch<F, kRows, kFetchers, p> {
  JUNO_GPU StageFetch(const Weight&, int, int, int) {}
  JUNO_GPU void fetch(unsigned char*, int) {}
};

}  // namespace juno::gpu
