// SPDX-License-Identifier: Apache-2.0
// One request on its way through the engine: its choices, what its listener hears, what it has cost.
#pragma once
#include <memory>
#include <vector>

#include "api/service.h"
#include "api/service_reply.h"
#include "api/service_task.h"

namespace juno::api {

class Job : public Task {
 public:
  Job(Work work, std::shared_ptr<Listener> listener, const tokenizer::Tokenizer& tokenizer);

  void begin(Workshop& workshop) override;
  void tend() override;
  void fail(const Error& error) override;
  bool started() const override { return started_.has_value(); }
  bool done() const override { return done_; }  // on_end() was called

 private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    ReplyPieces pieces;
    engine::SequenceId id = 0;
    bool open = false;  // in the engine
  };

  engine::Request request(int choice);
  void score_prompt(engine::Request& request);
  void submit(int choice);
  void computed(int64_t stored);
  bool heard(int choice, const engine::Token& token);
  void finished(int choice, engine::Finish& finish);
  void stop_all();
  void conclude();
  template <class F>
  void tell(F&& call);

  Work work_;
  const std::shared_ptr<Listener> listener_;
  const tokenizer::Tokenizer& tokenizer_;
  const int64_t prompt_tokens_;
  Workshop* workshop_ = nullptr;
  std::optional<engine::Guide> guide_;  // at the reply's begin
  std::vector<Choice> choices_;
  std::vector<TokenScore> prompt_scores_;
  int open_ = 0;  // choices
  const Clock::time_point arrived_ = Clock::now();
  std::optional<Clock::time_point> started_, first_token_;
  Outcome outcome_;
  std::optional<Error> error_;  // the first
  bool ended_early_ = false, done_ = false;
};

}  // namespace juno::api
