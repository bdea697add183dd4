// SPDX-License-Identifier: Apache-2.0
// Many sequences, one step at a time: the Scheduler decides, the Runner executes, the KvPool accounts, the
// PrefixCache remembers, the Picker has the Sampler pick.
#pragma once
#include <memory>

#include "engine/picker.h"
#include "engine/runner.h"
#include "engine/speculation.h"

namespace juno::engine {

class Engine;

struct EngineOptions {
  int64_t context = 0;    // tokens of one sequence
  int chunk = 64;         // tokens of one step
  int sequences = 1;      // running at once
  int32_t vocab = 0;      // tokens that may be sampled: those of the tokenizer, at most the rows of the head
  int64_t positions = 0;  // of all sequences together, at least one context; 0: `sequences` full contexts
  int outputs = 0;        // rows of logits of one step, at least `sequences`
  int beside = 0;         // Limits::beside
  int prompt_lookup = 0;  // tokens guessed at once from what prompt and reply hold already; 0: none
  Engine* draft = nullptr;  // guesses where that finds none; of the same vocabulary; outlives this one
  int draft_tokens = 0;     // guessed by it at once

  int guesses() const { return std::max(prompt_lookup, draft_tokens); }
  // Speculation wants a row for each guess.
  Limits limits() const {
    const int64_t checked = std::min<int64_t>(chunk, int64_t{sequences} * (1 + guesses()));
    return {.tokens = chunk,
            .sequences = sequences,
            .outputs = std::max(outputs, static_cast<int>(checked)),
            .beside = beside};
  }
  int pages() const {
    return positions > 0 ? KvPool::pages_for(positions) : KvPool::pages_for(context) * sequences;
  }
};

// A picture of now, and what was counted since the engine was made.
struct Counters {
  int64_t waiting = 0, running = 0, sessions = 0;
  int64_t pages_used = 0, pages_cached = 0, pages_total = 0;  // cached: nobody's, given up when wanted
  int64_t prompt_tokens = 0, cached_tokens = 0, new_tokens = 0, preempted = 0;
  int64_t drafted = 0, accepted = 0;  // guesses that were checked, and the right ones
};

// One thread at a time. Callbacks run inside step() and cancel() and may call submit() and cancel(), not
// step().
class Engine {
 public:
  // model and ops outlive the engine. Takes the memory of all positions.
  static Result<std::unique_ptr<Engine>> make(const model::Model& model, ops::Executor& ops,
                                              const EngineOptions& options);
  // The same, on several devices: those that the model was loaded for.
  static Result<std::unique_ptr<Engine>> make(const model::Model& model, std::vector<model::Stage> stages,
                                              const EngineOptions& options);
  ~Engine();

  // Fails, and calls nothing back, when the request is malformed or can never fit.
  Result<SequenceId> submit(Request request);

  // One forward pass and its tokens; false when there is nothing left to do. An error of a sequence goes to
  // its on_finish; one that is returned has ended all of them.
  Result<bool> step();

  // Ends a sequence with kCancelled; an unknown or finished id is nothing.
  void cancel(SequenceId id);

  // From now on steps of at most this many tokens, of which `outputs` may want their logits. Only while
  // nothing runs.
  Result<void> set_chunk(int chunk, int outputs);

  // Submits the request without the tokens [first, first + count) of its prompt; their pages and what was
  // computed after them is forgotten. The bits are those of a prompt that never held them.
  Result<SequenceId> cut(Request request, int64_t first, int64_t count);

  // Keeps what the cache knows of these tokens under another salt too, in pages of its own, and returns how
  // many tokens that are. kBusy when too few pages are free.
  Result<int64_t> clone(std::span<const int32_t> tokens, const std::string& from, const std::string& to);

  // What the session left in the cache goes, as far as nobody else uses it.
  void end_session(const std::string& session) { cache_->end_session(session); }
  int64_t session_tokens(const std::string& session) const { return cache_->session_tokens(session); }

  Counters counters() const;
  const KvPool& pool() const { return *pool_; }
  const Picker& picker() const { return *picker_; }
  // Each page is free, or held by whom the pool counts. An error is a defect of this program.
  Result<void> check() const;
  // The same, and nothing runs or waits: pages are free or the cache's.
  Result<void> check_idle() const;

 private:
  explicit Engine(const EngineOptions& options) : options_(options) {}
  void validate(const Request& request) const;
  void tidy();
  Result<void> speculate(std::span<Piece> pieces);
  void advance(const Piece& piece);
  Result<void> run(std::span<const Piece> pieces, bool hidden);
  void prepare(int row);
  void receive(int row);
  void take_pick(Sequence& s, const Row& row, Choice& choice);
  void accept(Sequence& s, const Row& row, const Pick& pick);
  void check_guess(Sequence& s, int32_t id);
  void follow(Sequence& s, Guide& guide);
  void conclude(const Piece& piece);
  void free_followers(const Sequence& leader);
  Result<bool> abandon(Error error);
  void end(Sequence& sequence, FinishReason reason, std::optional<Error> error = {});

  EngineOptions options_;
  int64_t rows_ = 0;  // of the embedding: ids that a prompt may hold
  std::unique_ptr<KvPool> pool_;
  std::unique_ptr<PrefixCache> cache_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Picker> picker_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::optional<Draft> draft_;
  std::vector<Sequence*> drafting_;  // of the step
  std::vector<Piece> pieces_;        // of the step that give logits, or of those that give hidden states
  std::vector<Choice> choices_;      // of the step's rows
  SequenceId last_id_ = 0;
  Counters ended_;  // tokens of the sequences that have ended
};

}  // namespace juno::engine
