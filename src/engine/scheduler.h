// SPDX-License-Identifier: Apache-2.0
// Decides what the next step computes: decodes of all running sequences, then chunks of prompts, first come
// first served, within a budget of tokens. It never computes anything itself.
#pragma once
#include <deque>
#include <span>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/sequence.h"

namespace juno::engine {

// Tokens [first, first + count) of a sequence: one run of the batch.
struct Piece {
  Sequence* sequence = nullptr;
  int64_t first = 0, count = 0;
};

struct Limits {
  int tokens = 64;      // of one step
  int sequences = 1;    // running at once; at most `tokens`
  int64_t context = 0;  // tokens of one sequence
};

class Scheduler {
 public:
  Scheduler(KvPool& pool, const Limits& limits);

  void add(Sequence& sequence);
  // Forgets the sequence; its pages stay its own.
  void remove(Sequence& sequence);

  // The next step, empty when there is nothing to do. Valid until the next call. A sequence is admitted when
  // all pages it can need are free: once running it never waits for memory.
  std::span<const Piece> next();

  void set_budget(int tokens) { limits_.tokens = tokens; }
  bool idle() const { return waiting_.empty() && running_.empty(); }

 private:
  void admit();

  KvPool& pool_;
  Limits limits_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;  // in order of admission
  std::vector<Piece> pieces_;
};

}  // namespace juno::engine
