// SPDX-License-Identifier: Apache-2.0
// A request's way: submit() makes it a sequence, steps move it on, end() leaves its pages to the cache and
// calls back.
#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/fp_env.h"

namespace juno::engine {
namespace {

// Whether no token comes any more.
bool over(const Sequence& s) { return s.state == State::kDone || s.stopped || s.broken || s.fault; }

// Whether the row's token continues its sequence.
bool samples(const Row& row) {
  const Sequence& s = *row.piece.sequence;
  return row.position + 1 == static_cast<int64_t>(s.tokens.size()) && row.position + 1 < s.limit &&
         row.position < s.stored;  // else it follows a wrong guess
}

bool wants_logits(const Row& row) {
  const Request& r = row.piece.sequence->request;
  const auto& at = r.logits_at;
  return r.on_logits &&
         ((r.every_logits && samples(row)) || std::binary_search(at.begin(), at.end(), row.position));
}

bool bans_ends(const Sequence& s) {
  return s.request.ignore_end || s.finish.new_tokens < s.request.min_tokens;
}

bool ends(const Sequence& s, int32_t id) {
  return std::ranges::find(s.request.stop_ids, id) != s.request.stop_ids.end();
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::make(const model::Model& model, ops::Executor& ops,
                                             const EngineOptions& options) {
  return make(model, std::vector<model::Stage>{{&ops, 0, model.config.layers}}, options);
}

Result<std::unique_ptr<Engine>> Engine::make(const model::Model& model, std::vector<model::Stage> stages,
                                             const EngineOptions& options) {
  return guard([&] {
    if (options.context < 1 || options.chunk < options.sequences || options.sequences < 1) {
      fail(Code::kUsage,
           "[engine] a context of {}, a chunk of {} and {} sequences: all must be positive and the chunk "
           "at least the sequences",
           options.context, options.chunk, options.sequences);
    }
    if (options.positions != 0 && options.positions < options.context) {
      fail(Code::kUsage, "[engine] {} positions do not hold a context of {}", options.positions,
           options.context);
    }
    if (options.prompt_lookup < 0 || options.draft_tokens < 0 ||
        (options.draft_tokens > 0) != !!options.draft) {
      fail(Code::kUsage, "[engine] {} tokens looked up and {} drafted by {} model", options.prompt_lookup,
           options.draft_tokens, options.draft ? "another" : "no");
    }
    std::unique_ptr<Engine> engine(new Engine(options));
    engine->options_.vocab = static_cast<int32_t>(std::min<int64_t>(options.vocab, model.config.vocab));
    engine->rows_ = model.config.vocab;
    const std::vector<ops::KvShape> layers(static_cast<size_t>(model.config.layers), model.config.kv_shape());
    std::vector<ops::Device*> devices;
    for (const model::Stage& s : stages)
      devices.insert(devices.end(), static_cast<size_t>(s.last - s.first), &s.ops->device());
    engine->pool_ = take(KvPool::make(std::move(devices), layers, options.pages()));
    const Limits limits = options.limits();
    if (options.draft) engine->draft_.emplace(*options.draft);
    engine->cache_ = std::make_unique<PrefixCache>(*engine->pool_);
    engine->scheduler_ = std::make_unique<Scheduler>(*engine->pool_, *engine->cache_, limits);
    engine->runner_ =
        take(Runner::make(model, std::move(stages), *engine->pool_, limits, engine->options_.vocab));
    engine->picker_ = std::make_unique<Picker>(*engine->runner_, engine->options_.vocab, limits.rows());
    engine->choices_.resize(static_cast<size_t>(limits.rows()));
    return engine;
  });
}

Engine::~Engine() = default;

Result<SequenceId> Engine::submit(Request request) {
  Result<void> valid = guard([&] { validate(request); });
  if (!valid) return tl::unexpected(std::move(valid.error()));
  auto s = std::make_unique<Sequence>();
  s->id = ++last_id_;
  s->tokens = request.prompt;
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t room = options_.context - prompt;
  s->limit = prompt + (request.max_tokens < 0 ? room : std::min(room, request.max_tokens));
  s->tokens.reserve(static_cast<size_t>(s->limit));
  s->pages.reserve(static_cast<size_t>(KvPool::pages_for(s->limit)));
  s->finish.prompt_tokens = prompt;
  s->submitted = std::chrono::steady_clock::now();
  for (const auto& other : sequences_)
    if (other->id == request.after && other->state != State::kDone && !other->prompt_done())
      s->leader = other.get();
  s->request = std::move(request);
  scheduler_->add(*s);
  sequences_.push_back(std::move(s));
  return last_id_;
}

void Engine::validate(const Request& r) const {
  const auto prompt = static_cast<int64_t>(r.prompt.size());
  if (prompt == 0) fail(Code::kUsage, "[engine] the prompt is empty");
  if (prompt > options_.context) {
    fail(Code::kBadData, "[engine] the prompt has {} tokens, the context holds {}", prompt, options_.context);
  }
  for (int32_t id : r.prompt) {
    if (id < 0 || id >= rows_) fail(Code::kBadData, "[engine] token {} is none of the model's {}", id, rows_);
  }
  take(engine::validate(r.sampling, options_.vocab));
  if (r.min_tokens < 0) fail(Code::kUsage, "[engine] min_tokens is {}, it must be 0 or more", r.min_tokens);
  int64_t least = 0;
  for (int64_t at : r.logits_at) {
    if (at < least || at >= prompt) {
      fail(Code::kUsage, "[engine] logits at position {}: positions must increase, to at most {}", at,
           prompt - 1);
    }
    least = at + 1;
  }
  if (r.on_hidden && (r.max_tokens != 0 || !r.logits_at.empty()))
    fail(Code::kUsage, "[engine] hidden states are wanted together with {}",
         r.max_tokens != 0 ? "new tokens" : "logits");
}

Result<bool> Engine::step() {
  const FpEnv mode;
  tidy();
  const Result<std::span<Piece>> next = guard([&] { return scheduler_->next(); });
  if (!next) return abandon(next.error());
  const std::span<Piece> pieces = *next;
  if (pieces.empty() && scheduler_->idle()) return false;
  if (pieces.empty()) return abandon(Error(Code::kFailed, "[engine] sequences wait and none can run"));
  if (Result<void> guessed = speculate(pieces); !guessed) return abandon(std::move(guessed.error()));
  for (bool hidden : {false, true}) {
    pieces_.clear();
    std::ranges::copy_if(pieces, std::back_inserter(pieces_), [&](const Piece& p) {
      return static_cast<bool>(p.sequence->request.on_hidden) == hidden && p.sequence->state != State::kDone;
    });
    if (Result<void> ran = run(pieces_, hidden); !ran) return abandon(std::move(ran.error()));
  }
  for (const Piece& piece : pieces) conclude(piece);
  return true;
}

// Forgets who is done, and ends who is late.
void Engine::tidy() {
  std::erase_if(sequences_, [](const auto& s) { return s->state == State::kDone; });
  const auto now = std::chrono::steady_clock::now();
  for (size_t i = 0; i < sequences_.size(); ++i) {
    Sequence& s = *sequences_[i];
    if (s.state == State::kDone || !s.request.deadline || now < *s.request.deadline) continue;
    end(s, FinishReason::kError,
        Error(Code::kBusy,
              fmt::format("[engine] the deadline has passed: {} of {} prompt tokens are computed, "
                          "{} new ones",
                          std::min(s.stored, s.finish.prompt_tokens), s.finish.prompt_tokens,
                          s.finish.new_tokens)));
  }
}

// Lets the step check guesses with what it has left: pieces that end with their sequence's newest token go on
// with what may follow it.
Result<void> Engine::speculate(std::span<Piece> pieces) {
  if (options_.guesses() == 0) return {};
  drafting_.clear();
  for (const Piece& piece : pieces) {
    Sequence& s = *piece.sequence;
    s.guesses.clear();
    s.checked = 0;
    if (s.state != State::kDecode || s.may_guess() <= 0 || scheduler_->spare() <= 0) continue;
    look_up(s.tokens, static_cast<size_t>(options_.prompt_lookup), s.guesses);
    if (s.guesses.empty() && draft_) drafting_.push_back(&s);
  }
  if (!drafting_.empty()) {
    const Result<void> drafted = draft_->guess(drafting_, options_.draft_tokens);
    if (!drafted) return drafted;
  }
  for (Piece& piece : pieces) {
    Sequence& s = *piece.sequence;
    const int64_t wanted = std::min<int64_t>(static_cast<int64_t>(s.guesses.size()), s.may_guess());
    if (wanted > 0) s.finish.drafted_tokens += scheduler_->extend(piece, wanted);
    const int64_t checked = piece.first + piece.count - std::ssize(s.tokens);
    s.guesses.resize(static_cast<size_t>(std::max<int64_t>(0, checked)));
  }
  return {};
}

void Engine::advance(const Piece& piece) {
  Sequence& s = *piece.sequence;
  s.stored += piece.count - std::ssize(s.guesses);
  if (s.request.on_prefill && s.finish.new_tokens == 0) s.request.on_prefill(s.stored);
}

// One pass and what comes of it. Hidden states and logits never come from the same one.
Result<void> Engine::run(std::span<const Piece> pieces, bool hidden) {
  if (pieces.empty()) return {};
  if (Result<void> ran = runner_->run(pieces, hidden); !ran) return ran;
  for (const Piece& piece : pieces) advance(piece);
  const int rows = static_cast<int>(runner_->rows().size());
  if (!hidden) {
    for (int i = 0; i < rows; ++i) prepare(i);
    picker_->pick(std::span(choices_).first(static_cast<size_t>(rows)));
  }
  for (int i = 0; i < rows; ++i) receive(i);
  return {};
}

// What is picked from the row depends on this, and nothing on what its company does meanwhile. Nothing is
// picked yet behind a guess, which may be wrong.
void Engine::prepare(int index) {
  const Row& row = runner_->rows()[static_cast<size_t>(index)];
  Sequence& s = *row.piece.sequence;
  Choice& c = choices_[static_cast<size_t>(index)];
  c.sampling = nullptr;
  if (over(s) || !samples(row)) return;
  const Request& r = s.request;
  c.row = index;
  c.sampling = &r.sampling;
  c.greatest = runner_->greatest(index);
  c.whole = row.whole;
  c.history = s.tokens;
  c.allowed = {.ends = r.stop_ids, .may_end = !bans_ends(s)};
  c.mask.clear();
  c.fault.reset();
  if (!r.grammar) return;
  const Result<void> followed = guard([&] {
    const grammar::Mask& mask = r.grammar->mask();
    c.mask = mask.bits;
    c.allowed.may_end = c.allowed.may_end && r.grammar->may_end();
    if (!mask.any && !r.grammar->may_end())
      fail(Code::kBadData,
           "[engine] the grammar cannot be followed: no token of this vocabulary continues it");
  });
  if (!followed) c.fault = followed.error();
}

// A row of logits to whom it belongs: the one who asked for the position, the sampler, or both.
void Engine::receive(int index) {
  const Row& row = runner_->rows()[static_cast<size_t>(index)];
  Sequence& s = *row.piece.sequence;
  if (over(s)) return;
  if (s.request.on_hidden || wants_logits(row)) {
    const std::span<const float> values = runner_->values(index);
    if (!all_finite(values)) {
      s.broken = true;
      return;
    }
    if (s.request.on_hidden) {  // once, also of what is computed anew after a preemption
      if (row.position < s.next_hidden) return;
      s.next_hidden = row.position + 1;
      return s.request.on_hidden(row.position, values);
    }
    s.request.on_logits(row.position, values);
  }
  if (s.state == State::kDone || !samples(row)) return;
  Choice& choice = choices_[static_cast<size_t>(index)];
  if (!choice.sampling) {  // the guess before it is right
    prepare(index);
    picker_->pick({&choice, 1});
  }
  take_pick(s, row, choice);
}

// Fails when no token is allowed: never a free choice instead.
void Engine::take_pick(Sequence& s, const Row& row, Choice& choice) {
  if (!wants_logits(row)) runner_->took_whole(choice.whole);
  if (!choice.finite) s.broken = true;
  else if (choice.fault) s.fault = std::move(choice.fault);
  else if (choice.pick.id < 0)
    s.fault = Error(Code::kUsage,
                    fmt::format("[engine] every token is excluded{} by logit_bias, min_tokens or ignore_end",
                                s.request.grammar ? " by the grammar," : ""));
  else accept(s, row, choice.pick);
}

void Engine::accept(Sequence& s, const Row& row, const Pick& pick) {
  if (s.checked < s.guesses.size()) check_guess(s, pick.id);
  s.tokens.push_back(pick.id);
  s.state = State::kDecode;
  ++s.finish.new_tokens;
  s.stopped = ends(s, pick.id);
  Token token{.id = pick.id, .position = row.position + 1};
  if (pick.score) {
    token.logprob = pick.score->logprob;
    token.top = pick.score->top;
  }
  if (s.request.grammar && !s.stopped) follow(s, *s.request.grammar);
  if (s.request.on_token && !s.request.on_token(token)) s.stopped = true;
}

// A right guess was stored by this step; its row is the next one.
void Engine::check_guess(Sequence& s, int32_t id) {
  if (s.guesses[s.checked] == id) {
    ++s.checked;
    ++s.stored;
    ++s.finish.accepted_tokens;
  } else {
    s.checked = s.guesses.size();
  }
}

void Engine::follow(Sequence& s, Guide& guide) {
  const Result<void> followed = guard([&] {
    guide.accept(s.tokens.back());
    s.stopped = guide.over();
  });
  if (!followed) s.fault = followed.error();
}

// Ends the sequence of a piece that has run, if this was its last.
void Engine::conclude(const Piece& piece) {
  Sequence& s = *piece.sequence;
  if (s.state == State::kDone) return;
  if (s.fault) return end(s, FinishReason::kError, std::move(s.fault));
  if (s.broken) return end(s, FinishReason::kError, runner_->explain(piece));
  if (s.stopped) return end(s, FinishReason::kStop);
  const bool full = static_cast<int64_t>(s.tokens.size()) == s.limit;
  if (full && (s.finish.new_tokens > 0 || s.stored == s.limit)) return end(s, FinishReason::kLength);
  if (piece.first >= s.finish.prompt_tokens || !s.prompt_done()) return;
  if (s.request.keep) cache_->publish(s);
  free_followers(s);
}

// Whoever waited for the sequence's prompt waits no more.
void Engine::free_followers(const Sequence& leader) {
  for (const auto& s : sequences_)
    if (s->leader == &leader) s->leader = nullptr;
}

void Engine::end(Sequence& s, FinishReason reason, std::optional<Error> error) {
  scheduler_->remove(s);
  s.state = State::kDone;
  s.finish.reason = reason;
  s.finish.error = std::move(error);
  if (s.request.keep && reason != FinishReason::kError) cache_->publish(s);
  pool_->release(s.pages);
  free_followers(s);
  ended_.prompt_tokens += s.finish.prompt_tokens;
  ended_.cached_tokens += s.finish.cached_tokens;
  ended_.new_tokens += s.finish.new_tokens;
  ended_.drafted += s.finish.drafted_tokens;
  ended_.accepted += s.finish.accepted_tokens;
  if (s.request.on_finish) s.request.on_finish(s.finish);
}

// A step that failed as a whole ends everything that is running or waiting.
Result<bool> Engine::abandon(Error error) {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i]->state != State::kDone) end(*sequences_[i], FinishReason::kError, error);
  }
  return tl::unexpected(std::move(error));
}

void Engine::cancel(SequenceId id) {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    Sequence& s = *sequences_[i];
    if (s.id == id && s.state != State::kDone) return end(s, FinishReason::kCancelled);
  }
}

Result<void> Engine::set_chunk(int chunk, int outputs) {
  return guard([&] {
    if (chunk < options_.sequences) {
      fail(Code::kUsage, "[engine] a chunk of {} tokens for {} sequences", chunk, options_.sequences);
    }
    if (!scheduler_->idle()) fail(Code::kFailed, "[engine] set_chunk() while sequences run");
    outputs = std::max(outputs, options_.limits().outputs);
    take(runner_->reserve(chunk, outputs));
    scheduler_->set_limits(chunk, outputs);
    choices_.resize(std::max(choices_.size(), static_cast<size_t>(outputs)));
  });
}

Result<SequenceId> Engine::cut(Request request, int64_t first, int64_t count) {
  return guard([&] {
    const auto prompt = static_cast<int64_t>(request.prompt.size());
    if (first < 0 || count < 1 || first > prompt || count > prompt - first) {
      fail(Code::kUsage, "[engine] {} tokens from position {} on are not within a prompt of {}", count, first,
           prompt);
    }
    Request rest = request;
    const auto begin = rest.prompt.begin() + static_cast<ptrdiff_t>(first);
    rest.prompt.erase(begin, begin + static_cast<ptrdiff_t>(count));
    const SequenceId id = take(submit(std::move(rest)));
    cache_->unpin(request.session);
    cache_->trim(request.salt, request.prompt, first);
    return id;
  });
}

Result<int64_t> Engine::clone(std::span<const int32_t> tokens, const std::string& from,
                              const std::string& to) {
  return cache_->clone(tokens, from, to);
}

Counters Engine::counters() const {
  Counters now = ended_;
  for (const auto& s : sequences_) {
    if (s->state == State::kDone) continue;
    now.prompt_tokens += s->finish.prompt_tokens;
    now.cached_tokens += s->finish.cached_tokens;
    now.new_tokens += s->finish.new_tokens;
    now.drafted += s->finish.drafted_tokens;
    now.accepted += s->finish.accepted_tokens;
  }
  now.waiting = scheduler_->waiting();
  now.running = scheduler_->running();
  now.preempted = scheduler_->preempted();
  now.sessions = static_cast<int64_t>(cache_->sessions());
  now.pages_cached = cache_->idle_pages();
  now.pages_used = pool_->used() - now.pages_cached;
  now.pages_total = pool_->total();
  return now;
}

Result<void> Engine::check() const {
  std::vector<int32_t> held;
  for (const auto& s : sequences_) held.insert(held.end(), s->pages.begin(), s->pages.end());
  cache_->held(held);
  return pool_->check(held);
}

Result<void> Engine::check_idle() const {
  if (!scheduler_->idle())
    return tl::unexpected(Error(Code::kFailed, "[engine] sequences are still running"));
  if (const int64_t used = counters().pages_used; used > 0)
    return tl::unexpected(Error(Code::kFailed, fmt::format("[engine] {} pages are held while idle", used)));
  return check();
}

}  // namespace juno::engine
