// SPDX-License-Identifier: Apache-2.0
#include "server/openai/generation.h"

#include <algorithm>

namespace juno::server {
namespace {

using dialect::Piece;
using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds kPatience{5000};

class PlainParser : public dialect::ReplyParser {
 public:
  std::vector<Piece> push(std::string_view text) override {
    if (text.empty()) return {};
    return {{Piece::Kind::kContent, std::string(text), 0}};
  }
  std::vector<Piece> finish() override { return {}; }
};

}  // namespace

class Generation::Part : public api::Listener {
 public:
  Part(std::shared_ptr<Generation> whole, int work) : whole_(std::move(whole)), work_(work) {}

  void on_prefill(int64_t done, int64_t prompt_tokens) override { whole_->prefill(done, prompt_tokens); }
  void on_prompt_scores(std::vector<api::TokenScore> scores) override {
    whole_->prompt_scores(work_, std::move(scores));
  }
  void on_delta(api::Delta delta) override { whole_->delta(work_, std::move(delta)); }
  void on_choice_end(api::ChoiceEnd end) override { whole_->choice_end(work_, end); }
  void on_end(api::Outcome outcome) override { whole_->part_end(outcome); }

 private:
  const std::shared_ptr<Generation> whole_;
  const int work_;
};

Refusal refusal_of(const Error& error) {
  switch (error.code) {
    case Code::kBusy:
      return Refusal(503, kServerError, "server_overloaded", {}, error.message);
    case Code::kDevice:
      return Refusal(503, kServerError, "server_overloaded", {}, error.message);
    case Code::kBadData:  // a grammar that turned out to be too ambiguous, or none for this vocabulary
      return bad("unsupported_json_schema", {}, error.message);
    case Code::kUsage:  // a bias that leaves no token
      return bad("invalid_value", "logit_bias", error.message);
    case Code::kInterrupted:
      return Refusal(503, kServerError, "shutting_down", {}, "the server is shutting down");
    default:
      return Refusal(500, kServerError, "internal_error", {}, error.message);
  }
}

// Of a work that was not taken.
Refusal refusal_of_submit(const Error& error) {
  if (error.code == Code::kBusy) return Refusal(429, kRateLimit, "rate_limit_exceeded", {}, error.message);
  if (error.code == Code::kNotFound)
    return Refusal(404, kInvalidRequest, "session_not_found", "session_id", error.message);
  if (error.code == Code::kUsage ||
      error.code == Code::kBadData)  // the tables let through what they must not
    return Refusal(500, kServerError, "internal_error", {}, error.message);
  return refusal_of(error);
}

void Generation::run(App& app, const std::shared_ptr<Exchange>& exchange, Plan plan,
                     std::unique_ptr<Voice> voice) {
  const std::shared_ptr<Generation> whole(new Generation(app, exchange, std::move(plan), std::move(voice)));
  whole->submit();
}

Generation::Generation(App& app, std::shared_ptr<Exchange> exchange, Plan plan, std::unique_ptr<Voice> voice)
    : app_(app), exchange_(std::move(exchange)), plan_(std::move(plan)), voice_(std::move(voice)) {
  for (int i = 0; i < plan_.choices(); ++i) {
    Choice choice;
    choice.parser = plan_.dialect ? plan_.dialect->parser(plan_.prompt, plan_.use.get())
                                  : std::make_unique<PlainParser>();
    choices_.push_back(std::move(choice));
  }
  open_ = plan_.works.size();
  choices_each_ = plan_.works[0].choices;
}

// The service may tell of a work before the next one is submitted, so the mutex is not held meanwhile.
void Generation::submit() {
  const size_t works = plan_.works.size();
  for (size_t i = 0; i < works; ++i) {
    app_.metrics.submitted(plan_.model, plan_.works[i].priority);
    auto ticket = plan_.service->submit(std::move(plan_.works[i]),
                                        std::make_shared<Part>(shared_from_this(), static_cast<int>(i)));
    const std::lock_guard lock(mutex_);
    if (ticket) tickets_.push_back(*ticket);
    if (!ticket && !failure_) failure_ = refusal_of_submit(ticket.error());
    if (!failure_) continue;
    open_ -= works - i - (ticket ? 1 : 0);
    cancel();
    conclude();
    break;
  }
  const std::weak_ptr<Generation> weak = weak_from_this();
  exchange_->on_close([weak] {
    if (const auto whole = weak.lock()) whole->leave();
  });
  exchange_->later(kPatience, [weak] {
    if (const auto whole = weak.lock()) whole->wait();
  });
}

void Generation::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  cancel();
}

void Generation::wait() {
  guarded([&] {
    if (!spoken_) voice_->waiting();
  });
}

void Generation::cancel() {
  for (const auto ticket : tickets_) plan_.service->cancel(ticket);
}

// Nothing may be thrown into the service's thread.
template <class F>
void Generation::guarded(F&& body) {
  const std::lock_guard lock(mutex_);
  if (told_) return;
  try {
    body();
  } catch (const std::exception& e) {
    if (!failure_) failure_ = Refusal(500, kServerError, "internal_error", {}, e.what());
    cancel();
  }
}

void Generation::prefill(int64_t done, int64_t prompt_tokens) {
  if (!plan_.wants_progress) return;
  guarded([&] { voice_->progress(done, prompt_tokens); });
}

void Generation::prompt_scores(int work, std::vector<api::TokenScore> scores) {
  guarded([&] { voice_->prompt_scores(work, std::move(scores)); });
}

void Generation::measure(Choice& choice, size_t tokens) {
  const auto now = std::chrono::steady_clock::now();
  if (!spoken_) app_.metrics.first_token(plan_.model, Seconds(now - arrived_).count());
  if (choice.latest && tokens > 0)
    app_.metrics.inter_token(plan_.model,
                             Seconds(now - *choice.latest).count() / static_cast<double>(tokens));
  choice.latest = now;
  spoken_ = true;
}

void Generation::delta(int work, api::Delta delta) {
  guarded([&] {
    if (failure_) return;
    const int index = work * choices_each_ + delta.choice;
    Choice& choice = choices_.at(static_cast<size_t>(index));
    measure(choice, delta.ids.size());
    choice.held_tokens += static_cast<int64_t>(delta.ids.size());
    std::ranges::move(delta.scores, std::back_inserter(choice.held));
    say(choice, index, choice.parser->push(delta.text), false);
  });
}

// Tokens belong to the kind of text that they made certain.
void Generation::say(Choice& choice, int index, std::vector<Piece> pieces, bool last) {
  if (pieces.empty() && !last) return;  // held back
  bool content = pieces.empty() && choice.kind == Piece::Kind::kContent, reasoning = false;
  for (const Piece& piece : pieces) {
    content |= piece.kind == Piece::Kind::kContent;
    reasoning |= piece.kind == Piece::Kind::kReasoning;
    choice.called |= piece.kind == Piece::Kind::kCall;
    choice.kind = piece.kind;
  }
  if (reasoning || (pieces.empty() && choice.kind == Piece::Kind::kReasoning))
    usage_.reasoning += choice.held_tokens;
  choice.held_tokens = 0;
  std::vector<api::TokenScore> scores = std::exchange(choice.held, {});
  if (!content) scores.clear();
  if (!pieces.empty() || !scores.empty()) voice_->pieces(index, std::move(pieces), std::move(scores));
}

void Generation::choice_end(int work, const api::ChoiceEnd& end) {
  guarded([&] {
    if (failure_) return;
    if (end.reason == api::FinishReason::kCancelled && !left_)
      failure_ = refusal_of(Error(Code::kInterrupted, ""));
    if (end.reason == api::FinishReason::kCancelled || end.reason == api::FinishReason::kError) return;
    const int index = work * choices_each_ + end.choice;
    Choice& choice = choices_.at(static_cast<size_t>(index));
    say(choice, index, choice.parser->finish(), true);
    const bool cut = end.reason == api::FinishReason::kLength;
    voice_->choice_end(index, {cut ? "length" : choice.called ? "tool_calls" : "stop", end.stop});
    spoken_ = true;
  });
}

void Generation::part_end(const api::Outcome& outcome) {
  app_.metrics.outcome(plan_.model, outcome);
  const std::lock_guard lock(mutex_);
  usage_.prompt += outcome.prompt_tokens;
  usage_.cached += outcome.cached_tokens;
  usage_.completion += outcome.new_tokens;
  if (outcome.error && !failure_) {
    failure_ = refusal_of(*outcome.error);
    cancel();
  }
  --open_;
  conclude();
}

// Tells the end once nothing of it runs any more.
void Generation::conclude() {
  if (open_ > 0 || told_) return;
  guarded([&] {
    if (!failure_ && !left_) voice_->end(usage_);
  });
  if (failure_) guarded([&] { voice_->fail(*failure_); });
  told_ = true;
}

}  // namespace juno::server
