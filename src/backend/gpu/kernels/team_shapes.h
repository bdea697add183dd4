// SPDX-License-Identifier: Apache-2.0
// Chunks of attention and how they are merged (docs/numerics.md §6), and how a block of threads shares its
// memory: shared by the kernels and their launches.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "base/portable.h"

namespace juno::gpu {

inline constexpr int kChunk = 64;  // positions

// attend_merge: chunks at a time, at most as many as threads; columns of a block, 32 for each of `wide`
// warps; its shared memory, of which steps and tops are parts.
struct MergeShape {
  int span, wide, steps, tops, bytes;

  JUNO_BOTH constexpr explicit MergeShape(const AttendArgs& a)
      : span(a.max_chunks <= 64 ? 64 : 512), wide(a.max_chunks > 64 ? 1 : (a.places.value_dim + 31) / 32) {
    wide = wide < 4 ? wide : 4;
    steps = span * columns() * 4;
    tops = steps + span * 16;
    bytes = tops + span / 32 * 4;
  }
  JUNO_BOTH constexpr int columns() const { return wide * 32; }
};

// Elements of a head as threads take them, the rest filled up with 0.
JUNO_BOTH constexpr int attend_width(const Places& p) {
  const int dim = p.key_dim > p.value_dim ? p.key_dim : p.value_dim;
  return dim <= 64 ? 64 : dim <= 128 ? 128 : 256;
}

// Shared memory of attend, in bytes. Of a team: keys and values of a chunk, scores and weights; where it
// keeps what its chunks come to, l and n of each head, the last step of their merging, and o.
struct AttendLayout {
  int width, key_stride;  // elements; keys lie apart so that neighbours are in different banks
  int keys = 0, values, scores, sums, steps, o, team;
  // Of the block, behind its teams: queries and the key of the row, f32 [.., width], and its key and value as
  // halves.
  int own, key_row, halves, bytes;

  JUNO_BOTH constexpr AttendLayout(const AttendArgs& a, int teams)
      : width(attend_width(a.places)), key_stride(width + 8) {
    const int tiled = (a.share + 3) / 4 * 4;
    values = keys + kChunk * key_stride * 2;
    scores = values + kChunk * width * 2;
    sums = scores + tiled * kChunk * 4;
    steps = sums + (a.parts ? 0 : tiled * 8);
    o = steps + (a.parts ? 0 : tiled * 12);
    team = o + (a.parts ? 0 : a.share * width * 4);
    own = teams * team;
    key_row = tiled;
    halves = own + (key_row + 1) * width * 4;
    bytes = halves + 2 * width * 2;
  }
};

}  // namespace juno::gpu
