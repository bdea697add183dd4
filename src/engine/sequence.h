// SPDX-License-Identifier: Apache-2.0
// A request, and the sequence that it becomes: its tokens, its pages, how far it has come.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/guide.h"
#include "engine/sampling.h"

namespace juno::engine {

using SequenceId = int64_t;

enum class Priority : uint8_t { kHigh, kNormal, kLow };

enum class FinishReason : uint8_t { kStop, kLength, kCancelled, kError };

struct Token {
  int32_t id = 0;
  int64_t position = 0;
  std::optional<float> logprob;  // with SamplingParams::logprobs
  std::span<const Scored> top;   // with top_logprobs; valid during the call
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  std::optional<Error> error;                                    // with kError
  int64_t prompt_tokens = 0, cached_tokens = 0, new_tokens = 0;  // cached: of the prompt, not computed anew
  int64_t drafted_tokens = 0, accepted_tokens = 0;  // guesses that were checked, and the right ones
  double queue_seconds = 0;                         // until it ran for the first time
};

struct Request {
  std::vector<int32_t> prompt;  // not empty, shorter than or as long as the context
  int64_t max_tokens =
      0;  // new tokens at most; 0: none, the prompt is only evaluated; -1: to the context's end
  SamplingParams sampling;
  std::vector<int32_t> stop_ids;   // end the sequence; still handed to on_token
  int64_t min_tokens = 0;          // stop_ids are banned until there are so many
  bool ignore_end = false;         // stop_ids are banned
  std::optional<Guide> grammar;    // the reply is held to it; stop_ids come exactly where it may end
  std::vector<int64_t> logits_at;  // positions of the prompt, increasing, handed to on_logits
  bool every_logits = false;       // on_logits also has each row that a token is picked from

  Priority priority = Priority::kNormal;
  std::string tenant;   // who asks: within a priority the one who was served least comes first
  std::string salt;     // prefixes are shared under an equal salt only
  std::string session;  // "": none; what it leaves in the cache stays until the session's next or its end
  std::optional<std::chrono::steady_clock::time_point> deadline;  // past it: kError with kBusy
  // A further choice of an earlier request: it waits until the prompt of that one is computed, and shares it.
  SequenceId after = 0;
  int64_t reuse = -1;  // tokens that may come from the cache at most; -1: all but those it has to compute
  bool keep = true;    // leaves what it computes in the cache

  std::function<void(int64_t stored)> on_prefill;  // after each step with a part of the prompt
  std::function<bool(const Token&)> on_token;      // false: the reply is complete (kStop)
  std::function<void(int64_t position, std::span<const float> logits)> on_logits;
  // What the head would read, of each position that is computed, in their order; only with max_tokens 0 and
  // without logits_at. [dim]
  std::function<void(int64_t position, std::span<const float> state)> on_hidden;
  std::function<void(Finish&)> on_finish;  // once, whatever happens
};

enum class State : uint8_t { kWaiting, kPrefill, kDecode, kDone };

// Those of a tenant, and the tokens that were computed for them.
struct Share {
  int64_t served = 0, sequences = 0;
};

struct Sequence {
  SequenceId id = 0;
  Request request;
  std::vector<int32_t> tokens;   // prompt, then what was sampled
  std::vector<int32_t> guesses;  // at what follows them, checked in this step
  size_t checked = 0;            // guesses that were found right, or all when one was wrong
  std::vector<int32_t> pages;    // for all tokens while it runs, the first ones perhaps shared
  int64_t stored = 0;            // tokens whose keys and values are in the pages
  int64_t limit = 0;             // tokens it may grow to
  size_t next_logits = 0;        // into request.logits_at
  int64_t next_hidden = 0;       // position
  State state = State::kWaiting;
  const Sequence* leader = nullptr;  // whose prompt it waits for
  Share* share = nullptr;
  std::chrono::steady_clock::time_point submitted;
  bool admitted = false;       // once, at least
  bool stopped = false;        // a stop token came, or on_token said so
  bool broken = false;         // its logits were not finite
  std::optional<Error> fault;  // no token could be picked
  Finish finish;

  // The token at a position, or the guess at it.
  int32_t at(int64_t position) const {
    const auto p = static_cast<size_t>(position);
    return p < tokens.size() ? tokens[p] : guesses[p - tokens.size()];
  }
  // Guesses that can be of use: the token after the last of them must have its place too.
  int64_t may_guess() const { return limit - 1 - static_cast<int64_t>(tokens.size()); }
  bool prompt_done() const { return stored >= finish.prompt_tokens || finish.new_tokens > 0; }
};

}  // namespace juno::engine
