// SPDX-License-Identifier: Apache-2.0
// A request, and the sequence that it becomes: its tokens, its pages, how far it has come.
#pragma once
#include <functional>
#include <optional>
#include <span>
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

// Tokens whose keys and values are in pages already: what one request leaves for the next that begins alike.
struct Prefix {
  std::vector<int32_t> ids;    // the tokens stored, from position 0
  std::vector<int32_t> pages;  // of the engine's pool, at least enough for ids
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  std::optional<Error> error;  // with kError
  int64_t prompt_tokens = 0, cached_tokens = 0, new_tokens = 0;
  Prefix prefix;  // with Request::keep_prefix; give it back by a request or Engine::release
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
  Prefix prefix;                   // ids must begin the prompt and leave at least one token of it
  bool keep_prefix = false;

  std::function<bool(const Token&)> on_token;  // false: the reply is complete (kStop)
  std::function<void(int64_t position, std::span<const float> logits)> on_logits;
  // What the head would read, of each position that is computed, in their order; only with max_tokens 0 and
  // without logits_at. [dim]
  std::function<void(int64_t position, std::span<const float> state)> on_hidden;
  std::function<void(Finish&)> on_finish;  // once, whatever happens
};

enum class State : uint8_t { kWaiting, kPrefill, kDecode, kDone };

struct Sequence {
  SequenceId id = 0;
  Request request;
  std::vector<int32_t> tokens;  // prompt, then what was sampled
  std::vector<int32_t> pages;   // for positions [0, limit)
  int64_t stored = 0;           // tokens whose keys and values are in the pages
  int64_t limit = 0;            // tokens it may grow to
  size_t next_logits = 0;       // into request.logits_at
  State state = State::kWaiting;
  bool stopped = false;        // a stop token came, or on_token said so
  bool broken = false;         // its logits were not finite
  std::optional<Error> fault;  // no token could be picked
  Finish finish;
};

}  // namespace juno::engine
