// SPDX-License-Identifier: Apache-2.0
// Chunks of attention and how they are merged (docs/numerics.md §6), and how a block of threads shares its
// memory: shared by the kernels and their launches.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "base/portable.h"

namespace juno::gpu {

inline constexpr int kTeam = 128;    // threads that do a chunk together
inline constexpr int kHeadTile = 4;  // query heads whose scores a thread finds at a time

// attend_merge: as many chunks at a time as it has threads.
inline constexpr int kMergeSpan = 256;
inline constexpr int kMergeShared = kMergeSpan * (32 * 4 + 16 + 8) + kMergeSpan / 32 * 4;

JUNO_BOTH constexpr int padded16(int bytes) { return (bytes + 15) / 16 * 16; }

// Shared memory of attend, in bytes. Of a team: keys and values of a chunk, scores and weights
// [tiles of heads, 64, kHeadTile], l and n of each head, and o of each head, which the block merges.
struct AttendLayout {
  int keys, values, scores, sums, o, team;
  // Of the block, behind its teams: o and, twice in turn, l and n of each head so far; queries, key and value
  // of the row.
  int all, states, own, bytes;

  JUNO_BOTH constexpr AttendLayout(const Places& p, int heads, int teams) {
    const int group = heads / p.kv_heads;
    keys = 0;
    values = keys + padded16(64 * p.key_dim * 2);
    scores = values + padded16(64 * p.value_dim * 2);
    sums = scores + (group + kHeadTile - 1) / kHeadTile * kHeadTile * 64 * 4;
    o = padded16(sums + group * 8);
    team = padded16(o + group * p.value_dim * 4);
    all = teams * team;
    states = all + padded16(group * p.value_dim * 4);
    own = padded16(states + 2 * group * 8);
    bytes = padded16(own + ((group + 1) * p.key_dim + p.value_dim) * 4);
  }
};

}  // namespace juno::gpu
