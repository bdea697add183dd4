// SPDX-License-Identifier: Apache-2.0
// How the many-token kernels cut their work: what their launches and their text have to agree on.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/portable.h"

namespace juno::gpu {

// Elements of K that are multiplied between two looks at shared memory, and those of a slab.
inline constexpr int kStageDepth = 128, kSlabDepth = 64;

JUNO_BOTH constexpr int64_t padded_to(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
JUNO_BOTH constexpr int64_t stages_of(int64_t k) { return padded_to(k, kStageDepth) / kStageDepth; }

// Where a piece of 8 elements, 16 bytes, of a row lies in one stage of `rows` rows, as tensor cores read it:
// a slab has eight pieces of each row side by side, shuffled from row to row, so that no two of a column
// share banks.
JUNO_BOTH constexpr int64_t piece_at(int64_t rows, int64_t row, int piece) {
  return (piece / 8 * rows + row) * (kSlabDepth * 2) + (piece % 8 ^ static_cast<int>(row % 8)) * 16;
}

// How a block of threads shares a product. A warpgroup (four warps) multiplies 64 rows of the weight, 16 a
// warp, with 8 kTiles rows of activations; one warpgroup more fetches.
template <int kTiles_, int kRowGroups_, int kLevels_, int kHeldLevels_>
struct ManyShape {
  static constexpr int kTiles = kTiles_;
  static constexpr int kRowGroups = kRowGroups_;
  static constexpr int kLevels = kLevels_;  // levels of the tree over the groups that live in registers
  static constexpr int kHeldLevels = kHeldLevels_;  // and in shared memory; the others in memory
  // Products are long enough to prepare the next weights behind them.
  static constexpr bool kAhead = kTiles >= 8;

  static constexpr int kConsumers = 128 * kRowGroups;
  static constexpr int kFetchers = 128;
  static constexpr int kThreads = kConsumers + kFetchers;
  static constexpr int kFetchRegisters = 40;
  // A block begins with as many registers for each thread, then consumers take what the fetchers leave.
  static constexpr int kAllRegisters = 65536 / kThreads / 8 * 8 * kThreads;
  static constexpr int kRegisters = (kAllRegisters - kFetchers * kFetchRegisters) / kConsumers / 8 * 8;
  static constexpr int kTokens = 8 * kTiles;
  static constexpr int kRows = 64 * kRowGroups;
  static constexpr int kSums = 4 * kTiles;                            // of a thread
  static constexpr int kDepth = 3;                                    // of the tree over eight groups
  static constexpr int kH = kTokens * kStageDepth * 2;                // where the sums begin in a stage
  static constexpr int kD = kH + kTokens * 16;                        // and the scales, of up to four blocks
  static constexpr int kW = (kD + 4 * kTokens * 4 + 15) / 16 * 16;    // and the weights
  static constexpr int kBarriers = 1024;                              // bytes, before the stages
  static constexpr int kHeld = kHeldLevels * kSums * kConsumers * 4;  // bytes, behind them
  static constexpr int kParked = (kDepth - kLevels - kHeldLevels) * kSums * kConsumers * 4;  // of a block
  static constexpr int kShared = 227 * 1024;
  // With `weights` bytes of them in a stage.
  JUNO_BOTH static constexpr int stage_bytes(int weights) { return (kW + weights + 1023) / 1024 * 1024; }
  JUNO_BOTH static constexpr int stages(int weights) {
    const int fit = (kShared - kBarriers - kHeld) / stage_bytes(weights);
    return fit < 8 ? fit : 8;
  }
};
using FewShape = ManyShape<4, 4, 1, 1>;
using WideShape = ManyShape<8, 2, 2, 1>;
using BroadShape = ManyShape<16, 2, 0, 1>;

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
