// SPDX-License-Identifier: Apache-2.0
// Whatever fails while a request runs, memory too, ends that request and no other.
#include "api/service_job.h"

#include <algorithm>
#include <utility>

#include "tokenizer/tokenizer.h"

namespace juno::api {
namespace {

double seconds(Job::Clock::time_point from, Job::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Job::Job(Work work, std::shared_ptr<Listener> listener, const tokenizer::Tokenizer& tokenizer)
    : work_(std::move(work)), listener_(std::move(listener)), tokenizer_(tokenizer) {
  choices_.reserve(static_cast<size_t>(work_.choices));
  for (int i = 0; i < work_.choices; ++i) choices_.push_back({ReplyPieces(tokenizer, i, work_)});
}

// Calls the listener. What it throws ends the request: nothing may unwind through the engine.
template <class F>
void Job::tell(F&& call) {
  try {
    call();
  } catch (Error& error) {
    if (!error_) error_ = std::move(error);
  } catch (const std::exception&) {
    if (!error_) error_ = out_of_memory();
  }
}

void Job::begin(engine::Engine& engine, Tally& tally) {
  engine_ = &engine;
  tally_ = &tally;
  submit(0);
}

void Job::submit(int choice) {
  ++submitted_;
  tell([&] {
    const auto ends = tokenizer_.end_tokens();
    engine::Request request{.prompt = submitted_ == work_.choices ? std::move(work_.prompt) : work_.prompt,
                            .max_tokens = work_.max_tokens,
                            .sampling = work_.sampling,
                            .stop_ids = {ends.begin(), ends.end()}};
    request.on_token = [this, choice](const engine::Token& token) { return heard(choice, token); };
    request.on_finish = [this, choice](engine::Finish& finish) { finished(choice, finish); };
    Choice& c = choices_[static_cast<size_t>(choice)];
    c.id = take(engine_->submit(std::move(request)));
    c.open = true;
    ++open_;
  });
  if (!error_) return;
  stop_all();
  if (open_ == 0) conclude();
}

// The prompt has been computed: now the others find it in the cache.
void Job::submit_rest() {
  while (submitted_ < work_.choices && !error_ && !ended_early_) submit(submitted_);
}

bool Job::heard(int choice, const engine::Token& token) {
  if (!started_) started_ = Clock::now();
  if (!first_token_) first_token_ = Clock::now();
  ++tally_->new_tokens;
  submit_rest();
  Choice& c = choices_[static_cast<size_t>(choice)];
  if (error_ || tokenizer_.is_end(token.id)) return false;
  tell([&] {
    TokenScore score;
    score.id = token.id;
    score.logprob = token.logprob.value_or(0);
    if (auto delta = c.pieces.push(std::move(score))) listener_->on_delta(std::move(*delta));
  });
  return !error_ && !c.pieces.stopped();
}

void Job::finished(int choice, engine::Finish& finish) {
  Choice& c = choices_[static_cast<size_t>(choice)];
  c.open = false;
  --open_;
  if (choice == 0) {
    outcome_.prompt_tokens = finish.prompt_tokens;
    outcome_.cached_tokens = finish.cached_tokens;
    tally_->prompt_tokens += finish.prompt_tokens;
    tally_->cached_tokens += finish.cached_tokens;
  }
  outcome_.new_tokens += finish.new_tokens;
  if (finish.error) tell([&] { throw *finish.error; });
  if (finish.reason != FinishReason::kCancelled) submit_rest();
  tell([&] {
    if (auto delta = c.pieces.finish()) listener_->on_delta(std::move(*delta));
    const FinishReason reason = c.pieces.stopped()         ? FinishReason::kStop
                                : error_.has_value() ? FinishReason::kError
                                                             : finish.reason;
    listener_->on_choice_end(
        {.choice = choice, .reason = reason, .stop = c.pieces.stop(), .tokens = finish.new_tokens});
  });
  if (error_) stop_all();
  if (open_ == 0) conclude();
}

void Job::tend(Clock::time_point now) {
  if (done_) return;
  const bool late = work_.deadline && now >= *work_.deadline;
  if (!late && !cancelled_.load(std::memory_order_relaxed)) return;
  if (late) tell([&] { juno::fail(Code::kBusy, "[api] the deadline has passed"); });
  ended_early_ = true;
  stop_all();
}

void Job::fail(const Error& error) {
  if (done_) return;
  tell([&] { throw Error(error); });
  stop_all();
  open_ = 0;
  conclude();
}

void Job::stop_all() {
  for (Choice& c : choices_)
    if (c.open) engine_->cancel(c.id);
}

void Job::conclude() {
  if (std::exchange(done_, true)) return;
  ++(error_ ? tally_->failed : ended_early_ ? tally_->cancelled : tally_->finished);
  const auto now = Clock::now();
  const auto started = started_.value_or(now), first = first_token_.value_or(now);
  outcome_.queue_seconds = seconds(arrived_, started);
  outcome_.prefill_seconds = seconds(started, first);
  outcome_.decode_seconds = seconds(first, now);
  Outcome said = outcome_;
  said.error = std::move(error_);
  tell([&] { listener_->on_end(std::move(said)); });
}

}  // namespace juno::api
