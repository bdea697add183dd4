// SPDX-License-Identifier: Apache-2.0
// Decides what the next step computes: who runs, and which of their tokens. It never computes anything
// itself.
#pragma once
#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/prefix_cache.h"
#include "engine/sequence.h"

namespace juno::engine {

// Tokens [first, first + count) of a sequence: one run of the batch.
struct Piece {
  Sequence* sequence = nullptr;
  int64_t first = 0, count = 0;
};

struct Limits {
  int tokens = 64;    // of one step
  int sequences = 1;  // running at once; at most `tokens`
  int outputs = 0;    // rows of logits of one step, at least `sequences`
  int beside = 0;     // of prompts in a step with decodes, or as many as these; 0: all there is room for

  int rows() const { return std::max(outputs, sequences); }
};

// Who comes first: the higher priority; of these the tenant that was served least; of its own the one that
// came first. Among those that run, tenants count no more: the higher priority, then who came first.
//
// A sequence is admitted when there are pages for its tokens, and gets a further page when it comes to one.
// When there is none, the cache gives up pages; then the last of those that run, in their order, is
// preempted: it waits again, and computes later what the cache does not keep. So the first of them always
// goes on, and since a context fits into the pool nobody waits for ever. A sequence is also preempted for one
// that waits with a higher priority.
//
// In a step each decode has its token. What is left of the budget is for prompts: half of it for the first of
// them, the rest for those that have least to do. Whoever decodes waits for the whole step, so beside decodes
// prompts have no more tokens than these, or than Limits::beside.
class Scheduler {
 public:
  Scheduler(KvPool& pool, PrefixCache& cache, const Limits& limits);

  void add(Sequence& sequence);
  // Forgets the sequence; its pages stay its own.
  void remove(Sequence& sequence);

  // The next step, empty when there is nothing to do. Valid until the next call.
  std::span<Piece> next();

  // Room that the step has left for guesses; next() is to be done.
  int64_t spare() const { return std::min(tokens_left_, outputs_left_); }
  // Makes a piece that ends its sequence longer, as far as there are room and pages, which are not taken from
  // anybody for it. -> by how many guesses, at most `count`.
  int64_t extend(Piece& piece, int64_t count);

  void set_limits(int tokens, int outputs);
  bool idle() const { return waiting_.empty() && running_.empty(); }
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  int64_t preempted() const { return preempted_; }

 private:
  void grow();
  void admit();
  Sequence* candidate() const;
  bool open(Sequence& s);
  void preempt(Sequence& s);
  void give(Sequence& s, int64_t most);
  void give_prompts(int64_t most);

  KvPool& pool_;
  PrefixCache& cache_;
  Limits limits_;
  std::map<std::string, Share> shares_;  // of tenants that have sequences
  std::vector<Sequence*> waiting_;
  std::vector<Sequence*> running_;  // in their order
  std::vector<Sequence*> prompts_;  // of a step
  std::vector<Piece> pieces_;
  int64_t tokens_left_ = 0, outputs_left_ = 0;  // of the step
  int64_t preempted_ = 0;
};

}  // namespace juno::engine
