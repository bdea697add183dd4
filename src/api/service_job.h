// SPDX-License-Identifier: Apache-2.0
// One request on its way through the engine: its choices, what its listener hears, what it has cost.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "api/service.h"
#include "api/service_reply.h"
#include "engine/engine.h"

namespace juno::api {

// Short enough to be said without taking memory.
inline Error out_of_memory() { return Error(Code::kBusy, "out of memory"); }

// Of all requests so far; written by the service's thread, read by any.
struct Tally {
  std::atomic<int64_t> prompt_tokens = 0, cached_tokens = 0, new_tokens = 0;
  std::atomic<int64_t> finished = 0, failed = 0, cancelled = 0;
};

class Job {
 public:
  using Clock = std::chrono::steady_clock;

  Job(Work work, std::shared_ptr<Listener> listener, const tokenizer::Tokenizer& tokenizer);

  // From any thread; carried out by tend().
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // All others on the service's thread. The engine outlives what runs.
  void begin(engine::Engine& engine, Tally& tally);
  // Between two steps: carries out cancel() and the deadline.
  void tend(Clock::time_point now);

  // Ends it, whatever the engine knows of it.
  void fail(const Error& error);

  bool started() const { return started_.has_value(); }  // has computed something
  bool done() const { return done_; }                    // on_end() was called

  Service::Ticket ticket = 0;  // set by who takes it in

 private:
  struct Choice {
    ReplyPieces pieces;
    engine::SequenceId id = 0;
    bool open = false;  // in the engine
  };

  void submit(int choice);
  void submit_rest();
  bool heard(int choice, const engine::Token& token);
  void finished(int choice, engine::Finish& finish);
  void stop_all();
  void conclude();
  template <class F>
  void tell(F&& call);

  Work work_;
  const std::shared_ptr<Listener> listener_;
  const tokenizer::Tokenizer& tokenizer_;
  engine::Engine* engine_ = nullptr;
  Tally* tally_ = nullptr;
  std::vector<Choice> choices_;
  int submitted_ = 0, open_ = 0;  // choices
  const Clock::time_point arrived_ = Clock::now();
  std::optional<Clock::time_point> started_, first_token_;
  Outcome outcome_;
  std::optional<Error> error_;  // the first
  std::atomic<bool> cancelled_ = false;
  bool ended_early_ = false, done_ = false;
};

}  // namespace juno::api
