// SPDX-License-Identifier: Apache-2.0
// The ranges of sampling parameters. Comparisons are written so that NaN fails them.
#include "engine/sampling.h"

#include <algorithm>

namespace juno::engine {
namespace {

void require(bool good, const char* name, double value, const char* range) {
  if (!good) fail(Code::kUsage, "[engine] {} is {}, it must be {}", name, value, range);
}

bool within(float x, float low, float high) { return x >= low && x <= high; }

}  // namespace

bool penalises(const SamplingParams& p) {
  return p.repeat_last_n != 0 &&
         (p.repeat_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0);
}

// Each token that is lowered may leave its place to one more. What is raised may come from anywhere.
Need need(const SamplingParams& p, int64_t excluded, int64_t most) {
  const bool raises =
      std::ranges::any_of(p.logit_bias, [](const auto& b) { return b.second > 0; }) ||
      (penalises(p) && (p.repeat_penalty < 1 || p.presence_penalty < 0 || p.frequency_penalty < 0));
  const int64_t picked = p.temperature == 0 ? 1 : p.top_k;
  if (p.logprobs) return {.all = "logprobs"};
  if (picked == 0) return {.all = "no top_k"};
  if (picked > most) return {.all = "a large top_k"};
  if (raises) return {.all = "a logit is raised"};
  const int64_t penalised = !penalises(p) ? 0 : p.repeat_last_n < 0 ? most : p.repeat_last_n;
  return {std::min(most, picked + excluded + std::ssize(p.logit_bias) + penalised)};
}

Result<void> validate(const SamplingParams& p, int32_t vocab) {
  return guard([&] {
    require(within(p.temperature, 0, 100), "temperature", p.temperature, "from 0 to 100");
    require(p.top_k >= 0, "top_k", p.top_k, "0 (off) or more");
    require(p.typical_p > 0 && p.typical_p <= 1, "typical_p", p.typical_p, "above 0 and at most 1");
    require(within(p.top_p, 0, 1), "top_p", p.top_p, "from 0 to 1");
    require(within(p.min_p, 0, 1), "min_p", p.min_p, "from 0 to 1");
    require(p.repeat_penalty > 0 && p.repeat_penalty <= 10, "repeat_penalty", p.repeat_penalty,
            "above 0 and at most 10");
    require(p.repeat_last_n >= -1, "repeat_last_n", p.repeat_last_n, "-1 (all), 0 (off) or more");
    require(within(p.presence_penalty, -2, 2), "presence_penalty", p.presence_penalty, "from -2 to 2");
    require(within(p.frequency_penalty, -2, 2), "frequency_penalty", p.frequency_penalty, "from -2 to 2");
    require(p.reply_start >= 0, "reply_start", static_cast<double>(p.reply_start), "0 or more");
    require(p.top_logprobs >= 0 && p.top_logprobs <= SamplingParams::kMostTop, "top_logprobs", p.top_logprobs,
            "from 0 to 20");
    for (const auto& [id, bias] : p.logit_bias) {
      if (id < 0 || id >= vocab) {
        fail(Code::kUsage, "[engine] logit_bias names token {}, the vocabulary has {}", id, vocab);
      }
      require(within(bias, -100, 100), "logit_bias", bias, "from -100 to 100");
    }
  });
}

}  // namespace juno::engine
