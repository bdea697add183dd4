// SPDX-License-Identifier: Apache-2.0
// What a request may ask of the sampler, and the ranges that are accepted. docs/sampling.md explains each
// step.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace juno::engine {

// The defaults are "off": greedy, no penalty.
struct SamplingParams {
  float temperature = 0;        // [0, 100]; 0: greedy
  int top_k = 0;                // ≥ 0; 0: off
  float typical_p = 1;          // (0, 1]; 1: off
  float top_p = 1;              // [0, 1]; 1: off; 0 keeps one
  float min_p = 0;              // [0, 1]; 0: off
  float repeat_penalty = 1;     // (0, 10]; 1: off
  int repeat_last_n = 64;       // tokens that the three penalties look back on; -1: all, 0: off
  float presence_penalty = 0;   // [-2, 2]
  float frequency_penalty = 0;  // [-2, 2]
  int64_t reply_start = 0;      // ≥ 0; presence and frequency are counted from this position on
  std::vector<std::pair<int32_t, float>> logit_bias;  // token, [-100, 100] added to its logit; -100 bans it
  uint64_t seed = 0;
  uint64_t stream = 0;    // of several replies to one prompt; each draws numbers of its own
  bool logprobs = false;  // also compute the logarithm of the pick's probability
  int top_logprobs = 0;   // [0, kMostTop]; with logprobs: and those of so many of the most probable tokens

  static constexpr int kMostTop = 20;
  static constexpr float kBan = -100;
};

// A token and the natural logarithm of its softmax over the unchanged logits of the vocabulary.
struct Scored {
  int32_t id = -1;
  float logprob = 0;
};

// Whether one of the three penalties is on.
bool penalises(const SamplingParams& params);

// What of a row of logits a pick is made from: so many of the greatest, or all of them and why.
struct Need {
  int64_t greatest = 0;
  std::string_view all;
};
// excluded: tokens that may be forbidden besides. most: the greatest logits that can be had at most.
Need need(const SamplingParams& params, int64_t excluded, int64_t most);

// Fails with kUsage, naming the parameter, its value and its range. vocab: tokens that may be sampled.
Result<void> validate(const SamplingParams& params, int32_t vocab);

}  // namespace juno::engine
