// SPDX-License-Identifier: Apache-2.0
// Guesses at the tokens that come next, so that one step can check several. A guess that is wrong costs time
// and changes nothing.
#pragma once
#include <span>
#include <vector>

#include "engine/sequence.h"

namespace juno::engine {

class Engine;

// Appends up to `most` tokens to `guesses`: those that followed the last place in `tokens` whose end agrees
// with the end of `tokens` in at least kLeastMatch tokens, and in as many as possible up to kMostMatch.
inline constexpr size_t kLeastMatch = 2, kMostMatch = 5;
void look_up(std::span<const int32_t> tokens, size_t most, std::vector<int32_t>& guesses);

// Another model of the same vocabulary that is faster. It draws with the numbers that the sequence will draw
// with, under the same grammar, so that where both models agree it guesses right at any temperature.
class Draft {
 public:
  explicit Draft(Engine& engine) : engine_(engine) {}

  // Fills `guesses` of each with at most `most` tokens. The error of a step is that of the draft's engine.
  Result<void> guess(std::span<Sequence* const> sequences, int64_t most);

 private:
  Request request(Sequence& sequence, int64_t most) const;

  Engine& engine_;
};

}  // namespace juno::engine
