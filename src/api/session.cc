// SPDX-License-Identifier: Apache-2.0
// One sequence at a time through an engine that could do more. What a conversation leaves in the cache
// serves its next turn.
#include "api/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "api/clock.h"
#include "api/open.h"
#include "base/fp_env.h"
#include "engine/guide.h"
#include "engine/reply_text.h"

namespace juno::api {
namespace {

using engine::Finish;
using engine::Request;
using engine::Token;

// -ln of the softmax of one logit, in double: a figure for people, so libm is allowed.
double nll(std::span<const float> logits, int32_t id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float l : logits) sum += std::exp(l - largest);
  return largest + std::log(sum) - logits[static_cast<size_t>(id)];
}

// Splits time and bytes of weights between prefill and decode.
class Meter {
 public:
  explicit Meter(const Opened& parts) : parts_(parts), before_(parts.snapshot()) {}

  void first_token() { prefill(stats_); }
  Stats done(const Finish& finish) {
    if (!prefilled_) prefill(stats_);
    const Snapshot all = parts_.snapshot().since(before_);
    stats_.prompt_tokens = finish.prompt_tokens;
    stats_.cached_tokens = finish.cached_tokens;
    stats_.new_tokens = finish.new_tokens;
    stats_.drafted_tokens = finish.drafted_tokens;
    stats_.accepted_tokens = finish.accepted_tokens;
    stats_.decode_seconds = seconds_since(start_) - stats_.prefill_seconds;
    stats_.decode_bytes = all.weight_bytes() - stats_.prefill_bytes;
    stats_.declined = all.declined_count();
    stats_.traffic = all.traffic;
    return stats_;
  }

 private:
  void prefill(Stats& stats) {
    prefilled_ = true;
    stats.prefill_seconds = seconds_since(start_);
    stats.prefill_bytes = parts_.snapshot().since(before_).weight_bytes();
  }

  const Opened& parts_;
  const Snapshot before_;
  const Clock::time_point start_ = Clock::now();
  bool prefilled_ = false;
  Stats stats_;
};

void add(Stats& total, const Stats& s) {
  total.prompt_tokens += s.prompt_tokens;
  total.cached_tokens += s.cached_tokens;
  total.new_tokens += s.new_tokens;
  total.drafted_tokens += s.drafted_tokens;
  total.accepted_tokens += s.accepted_tokens;
  total.prefill_seconds += s.prefill_seconds;
  total.decode_seconds += s.decode_seconds;
  total.prefill_bytes += s.prefill_bytes;
  total.decode_bytes += s.decode_bytes;
  total.declined += s.declined;
  total.traffic.launches += s.traffic.launches;
  total.traffic.failures += s.traffic.failures;
  total.traffic.written += s.traffic.written;
  total.traffic.read += s.traffic.read;
}

}  // namespace

struct Session::Parts : Opened {
  explicit Parts(Opened&& opened) : Opened(std::move(opened)) {}

  engine::Guides guides{*tokenizer};
  Stats total;
};

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  return guard([&] {
    const FpEnv mode;  // frequencies of RoPE are computed here
    return std::unique_ptr<Session>(new Session(std::make_unique<Parts>(open_parts(options))));
  });
}

const Info& Session::info() const { return parts_->info; }
const tokenizer::Tokenizer& Session::tokenizer() const { return *parts_->tokenizer; }
const tokenizer::ChatTemplate* Session::chat_template() const { return parts_->prompt->chat_template(); }
Stats Session::total() const { return parts_->total; }
Snapshot Session::counters() const { return parts_->snapshot(); }

Result<void> Session::chat_ready() const {
  if (const auto& fault = parts_->prompt->fault()) return tl::unexpected(*fault);
  return {};
}

Memory Session::memory(int64_t context) const {
  const engine::KvPool& pool = parts_->engine->pool();
  const uint64_t page = pool.bytes() / static_cast<uint64_t>(pool.total());
  return {.weights = parts_->info.weight_bytes,
          .kv = page * static_cast<uint64_t>(engine::KvPool::pages_for(context))};
}

Result<void> Session::check_idle() const { return parts_->engine->check_idle(); }

Result<std::vector<int32_t>> Session::chat_ids(std::span<const Message> messages) const {
  return guard([&] { return parts_->prompt->render(messages); });
}

Result<void> Session::check(const Generation& how) const {
  return engine::validate(how.sampling, tokenizer().size());
}

Result<Reply> Session::chat(std::span<const Message> messages, const Generation& how, const OnText& on_text) {
  auto ids = chat_ids(messages);
  if (!ids) return tl::unexpected(std::move(ids.error()));
  return generate(std::move(*ids), how, on_text);
}

Result<Reply> Session::complete(std::string_view text, const Generation& how, const OnText& on_text,
                                bool parse_special) {
  return generate(begun(tokenizer().encode(text, {.parse_special = parse_special}), tokenizer()), how,
                  on_text);
}

Result<Reply> Session::complete(std::vector<int32_t> ids, const Generation& how, const OnText& on_text) {
  return generate(std::move(ids), how, on_text);
}

Result<Reply> Session::generate(std::vector<int32_t> ids, const Generation& how, const OnText& on_text) {
  return guard([&] {
    cancelled_.store(false, std::memory_order_relaxed);
    if (ids.empty()) fail(Code::kUsage, "[api] the prompt is empty");
    const auto prompt = static_cast<int64_t>(ids.size());
    if (prompt > info().context || (prompt == info().context && how.max_tokens != 0)) {
      fail(Code::kBadData,
           "[api] the prompt has {} tokens and the context holds {}: there is no room for an answer", prompt,
           info().context);
    }
    engine::ReplyText text(tokenizer(), how.stop, on_text);
    Meter meter(*parts_);
    Reply reply;
    const auto ends = tokenizer().end_tokens();
    Request request{.prompt = std::move(ids),
                    .max_tokens = how.max_tokens,
                    .sampling = how.sampling,
                    .stop_ids = {ends.begin(), ends.end()}};
    if (how.grammar) request.grammar = parts_->guides.begin(how.grammar);
    request.on_token = [&](const Token& token) {
      if (token.position == prompt) meter.first_token();
      reply.ids.push_back(token.id);
      return tokenizer().is_end(token.id) || text.push(token.id);
    };
    request.on_finish = [&](Finish& finish) {
      reply.reason = finish.reason;
      reply.stats = meter.done(finish);
    };
    evaluate(std::move(request));
    text.finish();
    if (text.stopped()) reply.reason = FinishReason::kStop;
    reply.text = text.text();
    add(parts_->total, reply.stats);
    return reply;
  });
}

// Runs one request to its end; its error is thrown.
void Session::evaluate(Request request) {
  std::optional<Error> error;
  auto on_finish = std::move(request.on_finish);
  request.on_finish = [&](Finish& finish) {
    error = finish.error;
    if (on_finish) on_finish(finish);
  };
  engine::Engine& engine = *parts_->engine;
  const engine::SequenceId id = take(engine.submit(std::move(request)));
  try {
    do {
      if (cancelled_.load(std::memory_order_relaxed)) engine.cancel(id);
    } while (take(engine.step()));
  } catch (...) {  // also what a callback throws: no callback may run after this frame
    engine.cancel(id);
    throw;
  }
  if (error) throw std::move(*error);
}

Result<void> Session::logits(std::span<const int32_t> ids, std::span<const int64_t> positions, int chunk,
                             const OnLogits& on_logits) {
  return guard([&] {
    cancelled_.store(false, std::memory_order_relaxed);
    Request request{.prompt = {ids.begin(), ids.end()}, .logits_at = {positions.begin(), positions.end()}};
    if (positions.empty()) {
      for (int64_t p = 0; p < static_cast<int64_t>(ids.size()); ++p) request.logits_at.push_back(p);
    }
    request.on_logits = on_logits;
    evaluate_alone(std::move(request), chunk);
  });
}

// A request that shares nothing with the conversation, in chunks of its own.
void Session::evaluate_alone(Request request, int chunk) {
  engine::Engine& engine = *parts_->engine;
  const int tokens = chunk > 0 ? chunk : parts_->chunk;
  request.reuse = 0;
  request.keep = false;
  take(engine.set_chunk(tokens, static_cast<int>(std::min<size_t>(request.logits_at.size(), tokens))));
  bool cancelled = false;
  Meter meter(*parts_);
  request.on_finish = [&](Finish& finish) {
    cancelled = finish.reason == FinishReason::kCancelled;
    add(parts_->total, meter.done(finish));
  };
  const Result<void> done = guard([&] { evaluate(std::move(request)); });
  take(engine.set_chunk(parts_->chunk, 1));
  take(Result<void>(done));
  if (cancelled) fail(Code::kInterrupted, "[api] interrupted");
}

Result<Perplexity> Session::perplexity(std::span<const int32_t> ids, int64_t window) {
  return guard([&] {
    cancelled_.store(false, std::memory_order_relaxed);
    if (window < 2 || window > info().context) {
      fail(Code::kUsage, "[api] a window of {} tokens: at least 2 and at most the context's {}", window,
           info().context);
    }
    if (ids.size() < 2) fail(Code::kBadData, "[api] {} tokens are too few for a perplexity", ids.size());
    Perplexity result{.tokens = static_cast<int64_t>(ids.size())};
    double all = 0;
    for (size_t begin = 0; begin + 1 < ids.size(); begin += static_cast<size_t>(window)) {
      const auto part = ids.subspan(begin, std::min(static_cast<size_t>(window), ids.size() - begin));
      Request request{.prompt = {part.begin(), part.end()}};
      for (size_t p = 0; p + 1 < part.size(); ++p) request.logits_at.push_back(static_cast<int64_t>(p));
      double sum = 0;
      request.on_logits = [&](int64_t position, std::span<const float> row) {
        sum += nll(row, part[static_cast<size_t>(position) + 1]);
      };
      evaluate_alone(std::move(request), 0);
      const auto scored = static_cast<int64_t>(part.size()) - 1;
      result.window_nll.push_back(sum / static_cast<double>(scored));
      result.scored += scored;
      all += sum;
    }
    result.mean_nll = all / static_cast<double>(result.scored);
    result.perplexity = std::exp(result.mean_nll);
    return result;
  });
}

}  // namespace juno::api
