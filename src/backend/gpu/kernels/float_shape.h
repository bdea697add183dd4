// SPDX-License-Identifier: Apache-2.0
// How products of many tokens with float weights cut their work, for the kernels and their launches.
#pragma once

namespace juno::gpu {

// A thread has eight tokens by eight rows of the weight, and of K one element of each sixteen; sixteen
// threads side by side have all of it. A stage is a block of docs/numerics.md §4.
struct FloatShape {
  static constexpr int kSide = 8;                 // of a thread's tile
  static constexpr int kTokens = 32, kRows = 64;  // of a block
  static constexpr int kDepth = 32, kLanes = 16;  // elements of K: of a stage, and of a step
  static constexpr int kThreads = kTokens / kSide * (kRows / kSide) * kLanes;
  // In shared memory, floats: [kDepth] of tokens, then of rows; the four more keep a step's lanes in banks of
  // their own. Twice, one for the stage that is multiplied and one for the next.
  static constexpr int kTokenPitch = kTokens + 4, kRowPitch = kRows + 4;
  static constexpr int kStage = kDepth * (kTokenPitch + kRowPitch);
  static constexpr int kShared = 2 * kStage * 4;  // bytes
};

}  // namespace juno::gpu
