// SPDX-License-Identifier: Apache-2.0
// Picks the tokens of a step's rows, each on whichever thread is free. A pick depends on its row alone, so
// the number of threads changes no bit.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/runner.h"
#include "engine/sampler.h"

namespace juno::engine {

// The pick of one of the runner's rows.
struct Choice {
  // What it depends on, while `sampling` is set.
  int row = 0;
  const SamplingParams* sampling = nullptr;
  std::span<const int32_t> history;
  Allowed allowed;
  std::span<const ops::TopLogit> greatest;  // logits of the row, where the backend found them
  std::vector<uint64_t> mask;  // the grammar's, copied: there it is overwritten by the next one's
  std::optional<Error> fault;  // no token can be picked

  // What came of it.
  std::string_view whole;  // why it took the whole row though the backend finds the greatest logits
  bool finite = false;     // the logits; otherwise nothing is picked
  Pick pick;
  std::array<Scored, SamplingParams::kMostTop> top;  // what pick.score shows
};

// Whether all values are finite.
bool all_finite(std::span<const float> values);

class Picker {
 public:
  // rows: that are picked from at once, at most. Runner and choices outlive their use here.
  Picker(Runner& runner, int32_t vocab, int rows);

  // Fills in those of the choices that have `sampling`. Allocates nothing.
  void pick(std::span<Choice> choices);

  // How many each thread has picked.
  std::span<const int64_t> picked() const { return picked_; }

 private:
  // What one thread at a time works with.
  struct Desk {
    explicit Desk(int32_t vocab, size_t values) : sampler(vocab), logits(values) {}
    Sampler sampler;
    std::vector<float> logits;
  };
  void pick(Choice& choice, Desk& desk) const;

  Runner& runner_;
  ThreadPool* const pool_;
  std::vector<std::unique_ptr<Desk>> desks_;
  std::vector<int64_t> picked_;  // [threads]
};

}  // namespace juno::engine
