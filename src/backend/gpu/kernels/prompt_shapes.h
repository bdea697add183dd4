// SPDX-License-Identifier: Apache-2.0
// How the many-token kernels cut their work: what their launches and their text have to agree on.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/portable.h"

namespace juno::gpu {

inline constexpr int kPanelRows = 64;  // rows of activations in a panel
inline constexpr int kStageDepth =
    128;  // elements of K that are multiplied between two looks at shared memory

JUNO_BOTH constexpr int64_t padded_to(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
JUNO_BOTH constexpr int64_t panel_stages(int64_t k) { return padded_to(k, kStageDepth) / kStageDepth; }

// Where a piece of 8 elements, 16 bytes, of a row lies in one stage of `groups` groups of eight rows, as
// tensor cores read it: eight pieces of a row side by side, shuffled from row to row, so that no two of a
// column share banks.
JUNO_BOTH constexpr int piece_at(int groups, int group, int piece, int row) {
  return ((piece / 8 * groups + group) * 8 + row) * 128 + ((piece % 8) ^ row) * 16;
}
inline constexpr int kPanelStage = kPanelRows * kStageDepth * 2;  // bytes of a panel's stage
inline constexpr int kPanelSums = kPanelRows * 16;                // and of its sums

// How a block of threads shares a product. A warpgroup (four warps) multiplies 64 rows of the weight, 16 a
// warp, with 8 kTiles rows of activations.
template <int kTiles_, int kRowGroups_, int kSplit_, int kStages_, int kLevels_, bool kMinimaApart_ = false>
struct ManyShape {
  static constexpr int kTiles = kTiles_;
  static constexpr int kRowGroups =
      kRowGroups_;                          // warpgroups with rows of their own and the same activations
  static constexpr int kSplit = kSplit_;    // warpgroups with the same rows and other groups of K
  static constexpr int kStages = kStages_;  // pieces of K in shared memory
  static constexpr int kLevels = kLevels_;  // levels of the tree over the groups that live in registers
  static constexpr bool kMinimaApart =
      kMinimaApart_;  // minima have registers of their own, beside the products

  static constexpr int kThreads = 128 * kRowGroups * kSplit;
  static constexpr int kTokens = 8 * kTiles;
  static constexpr int kRows = 64 * kRowGroups;
  static constexpr int kSums = 4 * kTiles;  // of a thread
  static constexpr int kGroups = 8 / kSplit;
  static constexpr int kDepth = kGroups == 8 ? 3 : kGroups == 4 ? 2 : kGroups == 2 ? 1 : 0;  // of the tree
  static constexpr int kH = kTiles * 8 * kStageDepth * 2;  // where the sums begin in a stage
  static constexpr int kD = kH + kTiles * 128;             // and the scales, of up to four blocks
  static constexpr int kStageBytes = (kD + 4 * kTokens * 4 + 1023) / 1024 * 1024;
  static constexpr int kBarriers = 1024;  // bytes, before the stages
  static constexpr int kParked = kSplit > 1 ? kSums : kDepth > kLevels ? (kDepth - kLevels) * kSums : 0;
  static constexpr int kShared = kBarriers + kSplit * kStages * kStageBytes + kParked * kThreads * 4;
  static_assert(2 * kStages * kSplit * 8 <= kBarriers &&
                (kTokens <= kPanelRows || kTokens % kPanelRows == 0));
};
using WideShape = ManyShape<8, 2, 1, 4, 2>;
using NarrowShape = ManyShape<4, 1, 4, 3, 2>;
using BroadShape = ManyShape<16, 2, 1, 2, 1>;

// Attention. kDim: at least key_dim and value_dim. Two groups of warps take chunks in turn; a warp has 32
// query rows, which are pairs (position, head of the group), and a thread 8 of them.
template <int kDim_, bool kCapped_ = false>
struct PromptShape {
  static constexpr int kDim = kDim_;
  static constexpr bool kCapped = kCapped_;          // scores; a soft cap's text is long
  static constexpr int kWarps = kDim > 128 ? 2 : 4;  // of a group
  static constexpr int kTeam = kWarps * 32;          // threads of a group
  static constexpr int kThreads = 2 * kTeam;
  static constexpr int kRows = kWarps * 32;  // query rows of a tile
  static constexpr int kSlots = 64;          // positions of a chunk
  static constexpr int kRuns = kDim / 8;
  static constexpr int kColumns = kDim < 128 ? kDim : 128;  // of the values that lie in shared memory at once
  static constexpr int kParks = kDim > 128  ? 3
                                : kDim > 64 ? 2
                                            : 1;  // levels of the dots' tree that wait there
  // In shared memory, bytes.
  static constexpr int kQ = 0;                           // floats [kRows, kDim], query_at
  static constexpr int kStates = kQ + kRows * kDim * 4;  // RowState [kRows]
  static constexpr int kHeads = kStates + kRows * 8;  // int32 [kRows]: row and head, -1 where there is none
  static constexpr int kTurns = kHeads + kRows * 4;   // Arrivals [2, kWarps]
  static constexpr int kGroups = (kTurns + 2 * kWarps * 8 + 127) / 128 * 128;
  // Of a group.
  static constexpr int kK = 0;                                 // halves [kSlots, kDim], key_at
  static constexpr int kV = kK + kSlots * kDim * 2;            // floats [kSlots, kColumns]
  static constexpr int kWeights = kV + kSlots * kColumns * 4;  // floats [kWarps, kSlots, 32], Weights
  static constexpr int kGroupBytes = kWeights + kWarps * kSlots * 32 * 4;
  static constexpr int kShared = kGroups + 2 * kGroupBytes;
};

}  // namespace juno::gpu
