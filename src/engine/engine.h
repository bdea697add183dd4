// SPDX-License-Identifier: Apache-2.0
// Many sequences, one step at a time: the Scheduler decides, the Runner executes, the KvPool accounts, the
// Sampler picks.
#pragma once
#include <memory>

#include "engine/runner.h"
#include "engine/sampler.h"

namespace juno::engine {

struct EngineOptions {
  int64_t context = 0;  // tokens of one sequence
  int chunk = 64;       // tokens of one step
  int sequences = 1;    // running at once
  int32_t vocab = 0;    // tokens that may be sampled: those of the tokenizer, at most the rows of the head
};

// One thread at a time. Callbacks run inside step() and cancel() and may call submit() and cancel(), not
// step().
class Engine {
 public:
  // model and ops outlive the engine. Takes memory for `sequences` full contexts.
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

  // Gives pages back that a Finish left with its receiver: all, or those that its (shortened) ids do not
  // need.
  void release(Prefix& prefix);
  void shrink(Prefix& prefix);

  // The same prefix in pages of its own; an error when too few are free.
  Result<Prefix> copy(const Prefix& prefix);

  const KvPool& pool() const { return *pool_; }
  // Nothing is running and all pages are home (but `kept`, which the caller holds).
  Result<void> check_idle(int kept = 0) const;

 private:
  explicit Engine(const EngineOptions& options) : options_(options) {}
  void validate(const Request& request) const;
  Result<void> run(std::span<const Piece> pieces, bool hidden);
  void receive(int row);
  Pick pick(Sequence& s, const Row& row, std::span<const float> logits);
  void accept(Sequence& s, const Row& row, const Pick& pick);
  void follow(Sequence& s, Guide& guide);
  void conclude(const Piece& piece);
  Error starved() const;
  Result<bool> abandon(Error error);
  void end(Sequence& sequence, FinishReason reason, std::optional<Error> error = {});

  EngineOptions options_;
  int64_t rows_ = 0;  // of the embedding: ids that a prompt may hold
  std::unique_ptr<KvPool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Piece> pieces_;      // of the step that give logits, or of those that give hidden states
  std::span<const int32_t> best_;  // of the step's rows, where the backend found them
  SequenceId last_id_ = 0;
};

}  // namespace juno::engine
