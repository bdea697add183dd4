// SPDX-License-Identifier: Apache-2.0
// Weights on their way through shared memory: what a tile of rows has of one stage of K, plane after plane,
// in the order of layout.h. Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/layout.h"
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
struct Staged {
  const unsigned char* at;
};
JUNO_GPU Staged operator+(Staged from, int bytes) { return {from.at + bytes}; }
JUNO_GPU Quad32 stream16(Staged from) { return *reinterpret_cast<const Quad32*>(from.at); }
JUNO_GPU Quad32 constant16(Staged from) { return *reinterpret_cast<const Quad32*>(from.at); }
JUNO_GPU Pair32 constant8(Staged from) { return *reinterpret_cast<const Pair32*>(from.at); }
JUNO_GPU uint32_t constant4(Staged from) { return *reinterpret_cast<const uint32_t*>(from.at); }
JUNO_GPU uint16_t constant2(Staged from) { return *reinterpret_cast<const uint16_t*>(from.at); }
JUNO_GPU uint8_t constant1(Staged from) { return *from.at; }

template <class F, int p, int kRows, int kFurther>
JUNO_GPU Staged unit(const StagedRow<kRows, kFurther>& row, int i) {
  constexpr int kBytes = Layout<F>::planes().at[p].bytes, kUnits = staged_units<F>(p);
  constexpr int kOffset = staged_offset<F>(p, kRows) + kFurther / kStrip * staged_strip<F>(p);
  return {row.tile + row.row / kStrip * staged_strip<F>(p) + row.row % kStrip * kBytes +
          i % kUnits * (kStrip * kBytes) + kOffset};
}

// One of kFetchers threads' part of bringing stages of plane p: pieces of 16 bytes, or what a strip has of a
// unit.
template <class F, int p, int kRows, int kFetchers>
struct PlaneFetch {
  static constexpr Plane kPlane = Layout<F>::planes().at[p];
  static constexpr int kUnitBytes = kStrip * kPlane.bytes, kPiece = kUnitBytes < 16 ? kUnitBytes : 16;
  static constexpr int kPieces = staged_strip<F>(p) / kPiece;  // of a strip
  static constexpr int kSteps = (kRows / kStrip * kPieces + kFetchers - 1) / kFetchers;

  JUNO_GPU static void fetch(const Weight& w, int first_row, int stage, unsigned char* to, int thread) {
    const int units = w.cols / kPlane.elements, strips = (w.rows + kStrip - 1) / kStrip;
    const int strip = first_row / kStrip + thread / kPieces, piece = thread % kPieces;
    const int unit = stage * kStageDepth / kPlane.elements + piece * kPiece / kUnitBytes;
    if (unit >= units) return;
    const int64_t strip_bytes = int64_t{units} * kUnitBytes;
    const uint8_t* from = w.data + plane_offset<F>(p, w.rows, w.cols) + strip * strip_bytes +
                          int64_t{stage} * kStageDepth / kPlane.elements * kUnitBytes + piece * kPiece;
    to += staged_offset<F>(p, kRows) + thread * kPiece;
    int pieces = kRows / kStrip * kPieces - thread;  // of the tile, and of the rows that there are
    const int real = (strips - strip) * kPieces;
    if (real < pieces) pieces = real;
    JUNO_UNROLL_BY(4)
    for (int i = 0; i < kSteps; ++i) {
      if (i * kFetchers < pieces) copy_async<kPiece>(to + i * kFetchers * kPiece, from);
      from += kFetchers / kPieces * strip_bytes;
    }
  }
};
template <class F, int kRows, int kFetchers, int p = 0>
JUNO_GPU void fetch_planes(const Weight& w, int first_row, int stage, unsigned char* to, int thread) {
  if constexpr (p < kPlaneCount<F>) {
    PlaneFetch<F, p, kRows, kFetchers>::fetch(w, first_row, stage, to, thread);
    fetch_planes<F, kRows, kFetchers, p + 1>(w, first_row, stage, to, thread);
  }
}

}  // namespace juno::gpu
