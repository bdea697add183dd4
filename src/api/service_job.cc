// SPDX-License-Identifier: Apache-2.0
// Whatever fails while a request runs, memory too, ends that request and no other.
#include "api/service_job.h"

#include <utility>

#include "api/clock.h"
#include "tokenizer/tokenizer.h"

namespace juno::api {
namespace {

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// A tenant's own salt never equals one that was given.
std::string salt_of(const Work& work) {
  return work.salt.empty() ? "tenant " + work.tenant : "salt " + work.salt;
}

TokenScore scored(int32_t id, float logprob, std::span<const Scored> top) {
  TokenScore score;
  score.id = id;
  score.logprob = logprob;
  score.top.assign(top.begin(), top.end());
  return score;
}

}  // namespace

Job::Job(Work work, std::shared_ptr<Listener> listener, const tokenizer::Tokenizer& tokenizer)
    : Task(work.session),
      work_(std::move(work)),
      listener_(std::move(listener)),
      tokenizer_(tokenizer),
      prompt_tokens_(static_cast<int64_t>(work_.prompt.size())) {
  choices_.reserve(static_cast<size_t>(work_.choices));
  for (int i = 0; i < work_.choices; ++i) choices_.push_back({ReplyPieces(tokenizer, i, work_)});
}

// Calls the listener, or what may fail. What it throws ends the request: nothing may unwind through the
// engine.
template <class F>
void Job::tell(F&& call) {
  try {
    call();
  } catch (Error& error) {
    if (!error_) error_ = heard_as(std::move(error));
  } catch (const std::exception&) {
    if (!error_) error_ = out_of_memory();
  }
}

// The further choices wait in the engine until the prompt of the first is computed, and share it.
void Job::begin(Workshop& workshop) {
  workshop_ = &workshop;
  tell([&] {
    if (work_.grammar) guide_ = workshop.guides.begin(work_.grammar, work_.keep_control);
    for (int i = 0; i < work_.choices; ++i) submit(i);
  });
  if (!error_) return;
  stop_all();
  if (open_ == 0) conclude();
}

void Job::submit(int choice) {
  Choice& c = choices_[static_cast<size_t>(choice)];
  c.id = take(workshop_->engine.submit(request(choice)));
  c.open = true;
  ++open_;
}

engine::Request Job::request(int choice) {
  const auto ends = tokenizer_.end_tokens();
  engine::Request r;
  r.prompt = choice + 1 == work_.choices ? std::move(work_.prompt) : work_.prompt;
  r.max_tokens = work_.max_tokens;
  r.min_tokens = work_.min_tokens;
  r.ignore_end = work_.ignore_end;
  r.sampling = work_.sampling;
  r.sampling.stream = static_cast<uint64_t>(choice);
  r.sampling.reply_start = prompt_tokens_;
  r.sampling.logprobs = work_.logprobs.has_value();
  r.sampling.top_logprobs = work_.logprobs.value_or(0);
  r.stop_ids = {ends.begin(), ends.end()};
  r.grammar = guide_;
  r.priority = work_.priority;
  r.tenant = work_.tenant;
  r.salt = salt_of(work_);
  r.deadline = work_.deadline;
  if (choice == 0) {
    r.session = work_.session;
    r.on_prefill = [this](int64_t stored) { computed(stored); };
    if (work_.prompt_logprobs) score_prompt(r);
  } else {
    r.after = choices_[0].id;
  }
  r.on_token = [this, choice](const engine::Token& token) { return heard(choice, token); };
  r.on_finish = [this, choice](engine::Finish& finish) { finished(choice, finish); };
  return r;
}

// Each token of the prompt but the first, by the logits of the position before it.
void Job::score_prompt(engine::Request& r) {
  if (prompt_tokens_ == 1) return listener_->on_prompt_scores({});
  for (int64_t p = 0; p + 1 < prompt_tokens_; ++p) r.logits_at.push_back(p);
  r.on_logits = [this, prompt = r.prompt](int64_t position, std::span<const float> logits) {
    tell([&] {
      const int32_t id = prompt[static_cast<size_t>(position) + 1];
      const engine::Score score = workshop_->sampler.score(logits, id, work_.logprobs.value_or(0));
      prompt_scores_.push_back(scored(id, score.logprob, score.top));
      if (position + 2 == prompt_tokens_) listener_->on_prompt_scores(std::move(prompt_scores_));
    });
  };
}

void Job::computed(int64_t stored) {
  if (!started_) started_ = Clock::now();
  tell([&] { listener_->on_prefill(stored, prompt_tokens_); });
}

bool Job::heard(int choice, const engine::Token& token) {
  if (!first_token_) first_token_ = Clock::now();
  ++workshop_->tally.new_tokens;
  Choice& c = choices_[static_cast<size_t>(choice)];
  if (error_ || tokenizer_.is_end(token.id)) return false;
  tell([&] {
    auto delta = c.pieces.push(scored(token.id, token.logprob.value_or(0), token.top));
    if (delta) listener_->on_delta(std::move(*delta));
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
    workshop_->tally.prompt_tokens += finish.prompt_tokens;
    workshop_->tally.cached_tokens += finish.cached_tokens;
  }
  outcome_.new_tokens += finish.new_tokens;
  outcome_.drafted_tokens += finish.drafted_tokens;
  outcome_.accepted_tokens += finish.accepted_tokens;
  tell([&] {
    if (finish.error) throw Error(*finish.error);
  });
  tell([&] {
    if (auto delta = c.pieces.finish()) listener_->on_delta(std::move(*delta));
    const FinishReason reason = c.pieces.stopped() ? FinishReason::kStop
                                : error_           ? FinishReason::kError
                                                   : finish.reason;
    listener_->on_choice_end(
        {.choice = choice, .reason = reason, .stop = c.pieces.stop(), .tokens = finish.new_tokens});
  });
  if (error_) stop_all();
  if (open_ == 0) conclude();
}

void Job::tend() {
  if (done_ || ended_early_ || !cancelled()) return;
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
    if (c.open) workshop_->engine.cancel(c.id);
}

void Job::conclude() {
  if (std::exchange(done_, true)) return;
  Tally& tally = workshop_->tally;
  ++(error_ ? tally.failed : ended_early_ ? tally.cancelled : tally.finished);
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
