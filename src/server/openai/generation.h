// SPDX-License-Identifier: Apache-2.0
// One request that generates, from the moment that all its checks have passed: what every route shares.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/service.h"
#include "dialect/dialect.h"
#include "server/app.h"
#include "server/json.h"
#include "server/refusal.h"

namespace juno::server {

// What is to run. Choices are counted over all works: choice = work * n + i.
struct Plan {
  std::string model;  // as the client named it
  std::shared_ptr<api::Service> service;
  std::vector<api::Work> works;  // one a prompt, all with the same number of choices
  bool wants_progress = false;

  std::shared_ptr<const Json> body;                 // what `use` points into
  std::shared_ptr<const dialect::Dialect> dialect;  // null: all text is content
  std::shared_ptr<const dialect::ToolUse> use;      // null: no tools
  std::string prompt;                               // rendered; for the dialect

  int choices() const { return works.empty() ? 0 : static_cast<int>(works.size()) * works[0].choices; }
};

struct Usage {
  int64_t prompt = 0, cached = 0, completion = 0, reasoning = 0;  // tokens
};

struct Ending {
  std::string_view reason;          // stop, length or tool_calls
  std::optional<std::string> stop;  // the stop string that matched
};

// How a route tells a generation. Called one at a time; `choice` as in Plan. Either end() or fail() is last.
class Voice {
 public:
  virtual ~Voice() = default;
  // Nothing was told for a while: a stream may begin, so that its comments keep the connection alive.
  virtual void waiting() {}
  virtual void progress(int64_t done, int64_t prompt_tokens) { (void)done, (void)prompt_tokens; }
  virtual void prompt_scores(int work, std::vector<api::TokenScore> scores) { (void)work, (void)scores; }
  // scores: those of tokens whose text is content.
  virtual void pieces(int choice, std::vector<dialect::Piece> pieces,
                      std::vector<api::TokenScore> scores) = 0;
  virtual void choice_end(int choice, const Ending& ending) = 0;
  virtual void end(const Usage& usage) = 0;
  virtual void fail(const Refusal& why) = 0;
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // Submits the works and lets `voice` answer. The client's leaving cancels them.
  static void run(App& app, const std::shared_ptr<Exchange>& exchange, Plan plan,
                  std::unique_ptr<Voice> voice);

 private:
  class Part;
  struct Choice {
    std::unique_ptr<dialect::ReplyParser> parser;
    std::vector<api::TokenScore> held;  // of text that the parser holds back
    int64_t held_tokens = 0;
    dialect::Piece::Kind kind = dialect::Piece::Kind::kContent;  // of the latest piece
    bool called = false;
    std::optional<std::chrono::steady_clock::time_point> latest;
  };

  Generation(App& app, std::shared_ptr<Exchange> exchange, Plan plan, std::unique_ptr<Voice> voice);
  void submit();
  void cancel();
  void leave();
  void wait();
  void prefill(int64_t done, int64_t prompt_tokens);
  void prompt_scores(int work, std::vector<api::TokenScore> scores);
  void delta(int work, api::Delta delta);
  void choice_end(int work, const api::ChoiceEnd& end);
  void part_end(const api::Outcome& outcome);
  void say(Choice& choice, int index, std::vector<dialect::Piece> pieces, bool last);
  void measure(Choice& choice, size_t tokens);
  void conclude();
  template <class F>
  void guarded(F&& body);

  App& app_;
  const std::shared_ptr<Exchange> exchange_;
  Plan plan_;
  const std::unique_ptr<Voice> voice_;
  const std::chrono::steady_clock::time_point arrived_ = std::chrono::steady_clock::now();

  std::recursive_mutex
      mutex_;  // of all below; recursive, because what is sent may find that the client has left
  std::vector<Choice> choices_;
  std::vector<api::Service::Ticket> tickets_;
  Usage usage_;
  std::optional<Refusal> failure_;  // the first
  size_t open_ = 0;                 // works that have not ended
  int choices_each_ = 1;            // of a work
  bool told_ = false, spoken_ = false, left_ = false;
};

// What an error of the service is to a client.
Refusal refusal_of(const Error& error);

}  // namespace juno::server
