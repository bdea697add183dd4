// SPDX-License-Identifier: Apache-2.0
// Every sum runs over candidates sorted by logit (descending) and id (ascending); every operation is rounded
// alone.
#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/math.h"
#include "base/math_double.h"
#include "base/philox.h"

namespace juno::engine {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kExcluded = -std::numeric_limits<float>::infinity();

// Unsigned integers in the reverse order of the floats; -0 counts as +0.
uint32_t descending(float x) {
  const uint32_t bits = bits_of(x + 0.0f);
  return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

bool in_mask(const Allowed& allowed, size_t id) {
  if (allowed.mask.empty()) return true;
  return id / 64 < allowed.mask.size() && (allowed.mask[id / 64] >> (id % 64) & 1) != 0;
}

float biased(float logit, float bias) { return bias <= SamplingParams::kBan ? kExcluded : logit + bias; }

// count: of Sampler::count().
float penalised(const SamplingParams& params, int32_t count, float logit) {
  if (logit == kExcluded) return logit;
  logit = logit > 0 ? logit / params.repeat_penalty : logit * params.repeat_penalty;
  if (count / 2 > 0)
    logit -= static_cast<float>(count / 2) * params.frequency_penalty + params.presence_penalty;
  return std::clamp(logit, -kLargest, kLargest);
}

float ln(float x) { return static_cast<float>(f64::log(static_cast<double>(x))); }

}  // namespace

Sampler::Sampler(int32_t vocab) : logits_(vocab), counts_(vocab) {
  best_.reserve(vocab);
  other_.reserve(vocab);
  top_.reserve(SamplingParams::kMostTop);
}

Pick Sampler::pick(const SamplingParams& params, std::span<const float> logits,
                   std::span<const int32_t> history, int64_t position, const Allowed& allowed) {
  exclude(logits, allowed);
  for (const auto& [id, bias] : params.logit_bias) logits_[id] = biased(logits_[id], bias);
  penalise(params, history);

  Pick pick;
  if (params.temperature == 0) {
    pick.id = greedy();
  } else {
    sort(params.top_k);
    pick.id = choose(params, position);
  }
  if (params.logprobs && pick.id >= 0) pick.score = score(logits, pick.id, params.top_logprobs);
  return pick;
}

// What is missing comes after the last of `greatest` and stays there. So as many as still come before it, or
// are it, are the greatest of all.
std::optional<Pick> Sampler::pick(const SamplingParams& params, std::span<const ops::TopLogit> greatest,
                                  std::span<const int32_t> history, int64_t position,
                                  const Allowed& allowed) {
  best_.clear();
  for (const ops::TopLogit& t : greatest) best_.push_back({descending(t.logit), t.id, t.logit, 0});
  const Candidate last = best_.back();
  lower(params, history, allowed);
  std::sort(best_.begin(), best_.end());
  const size_t count =
      std::min(logits_.size(), params.temperature == 0 ? 1 : static_cast<size_t>(params.top_k));
  if (greatest.size() < logits_.size() && (best_.size() < count || last < best_[count - 1]))
    return std::nullopt;
  best_.resize(std::min(best_.size(), count));
  if (params.temperature > 0) return Pick{.id = choose(params, position)};
  return Pick{.id = best_[0].logit == kExcluded ? -1 : best_[0].id};
}

// From best_, the logits sorted.
int32_t Sampler::choose(const SamplingParams& params, int64_t position) {
  while (!best_.empty() && best_.back().logit == kExcluded) best_.pop_back();
  if (best_.empty()) return -1;
  keep_typical(params.typical_p);
  keep_top_p(params.top_p);
  keep_min_p(params.min_p);
  const auto words = philox(params.seed, static_cast<uint64_t>(position), params.stream);
  return draw(params.temperature, uniform(words[0]));
}

// Copies the logits, those of what is not allowed as -inf, which nothing that follows lifts again.
void Sampler::exclude(std::span<const float> logits, const Allowed& allowed) {
  std::copy_n(logits.begin(), logits_.size(), logits_.begin());
  if (!allowed.mask.empty()) {
    for (size_t id = 0; id < logits_.size(); ++id)
      if (!in_mask(allowed, id)) logits_[id] = kExcluded;
  }
  for (int32_t id : allowed.ends) {
    if (id >= 0 && id < static_cast<int32_t>(logits_.size()))
      logits_[id] = allowed.may_end ? logits[id] : kExcluded;
  }
}

// The tokens that the penalties look back on, and in counts_ for each of them twice what is counted, plus 1:
// it was seen.
std::span<const int32_t> Sampler::count(const SamplingParams& params, std::span<const int32_t> history) {
  if (!penalises(params)) return {};
  const size_t window = params.repeat_last_n < 0 ? history.size() : static_cast<size_t>(params.repeat_last_n);
  const auto recent = history.last(std::min(window, history.size()));
  const size_t first = history.size() - recent.size();
  for (size_t i = 0; i < recent.size(); ++i) {
    if (!known(recent[i])) continue;
    int32_t& count = counts_[recent[i]];
    count = (count | 1) + (first + i >= static_cast<size_t>(params.reply_start) ? 2 : 0);
  }
  return recent;
}

void Sampler::penalise(const SamplingParams& params, std::span<const int32_t> history) {
  for (int32_t id : count(params, history)) {
    if (!known(id) || counts_[id] == 0) continue;
    logits_[id] = penalised(params, std::exchange(counts_[id], 0), logits_[id]);
  }
}

// What exclude() and penalise() do to all logits, done to those in best_.
void Sampler::lower(const SamplingParams& params, std::span<const int32_t> history, const Allowed& allowed) {
  for (Candidate& c : best_) {
    const bool end = std::ranges::find(allowed.ends, c.id) != allowed.ends.end();
    if (end ? !allowed.may_end : !in_mask(allowed, static_cast<size_t>(c.id))) c.logit = kExcluded;
  }
  for (const auto& [id, bias] : params.logit_bias) {
    const auto c = std::ranges::find(best_, id, &Candidate::id);
    if (c != best_.end()) c->logit = biased(c->logit, bias);
  }
  const auto recent = count(params, history);
  for (Candidate& c : best_) {
    if (counts_[c.id] != 0) c.logit = penalised(params, counts_[c.id], c.logit);
    c.key = descending(c.logit);
  }
  for (int32_t id : recent)
    if (known(id)) counts_[id] = 0;
}

int32_t Sampler::greedy() const {
  const auto best = std::max_element(logits_.begin(), logits_.end());
  return *best == kExcluded ? -1 : static_cast<int32_t>(best - logits_.begin());
}

// Fills best_ with the `top_k` largest (0: all) of logits_.
void Sampler::sort(int top_k) {
  constexpr size_t kFew = 512;  // up to here a heap beats the radix sort
  best_.clear();
  const size_t count = top_k == 0 ? logits_.size() : std::min(logits_.size(), static_cast<size_t>(top_k));
  if (count <= kFew) return select(count);
  for (int32_t id = 0; id < static_cast<int32_t>(logits_.size()); ++id)
    if (logits_[id] != kExcluded) best_.push_back(candidate(id));
  radix_sort();
  best_.resize(std::min(best_.size(), count));
}

Sampler::Candidate Sampler::candidate(int32_t id) const {
  return {descending(logits_[id]), id, logits_[id], 0};
}

// A heap with the least of the best so far on top. Most blocks of logits hold none that is larger, which is
// found out for a whole block at once. Ids ascend, so one that is as large comes too late.
void Sampler::select(size_t count) {
  constexpr size_t kBlock = 64;
  for (size_t id = 0; id < count; ++id) best_.push_back(candidate(static_cast<int32_t>(id)));
  std::make_heap(best_.begin(), best_.end());
  for (size_t at = count; at < logits_.size(); at += kBlock) {
    const size_t end = std::min(at + kBlock, logits_.size());
    const float least = best_.front().logit;
    int larger = 0;
    for (size_t id = at; id < end; ++id) larger |= logits_[id] > least;
    if (larger == 0) continue;
    for (size_t id = at; id < end; ++id) {
      if (!(logits_[id] > best_.front().logit)) continue;
      std::pop_heap(best_.begin(), best_.end());
      best_.back() = candidate(static_cast<int32_t>(id));
      std::push_heap(best_.begin(), best_.end());
    }
  }
  std::sort_heap(best_.begin(), best_.end());
}

// Stable, by key; ids ascend before it and therefore among equal keys after it.
void Sampler::radix_sort() {
  other_.resize(best_.size());
  for (int shift = 0; shift < 32; shift += 8) {
    std::array<uint32_t, 257> start{};
    for (const Candidate& c : best_) ++start[((c.key >> shift) & 255) + 1];
    for (int i = 0; i < 256; ++i) start[i + 1] += start[i];
    for (const Candidate& c : best_) other_[start[(c.key >> shift) & 255]++] = c;
    best_.swap(other_);
  }
}

// p = exp((logit - largest) / temperature), not normalised: the first is 1. Returns their sum.
float Sampler::weigh(float temperature) {
  float sum = 0;
  for (Candidate& c : best_) {
    c.p = juno::exp((c.logit - best_[0].logit) / temperature);
    sum += c.p;
  }
  return sum;
}

// Locally typical sampling (Meister et al., 2022): the candidates whose information is nearest to the
// entropy, until they hold `mass`.
void Sampler::keep_typical(float mass) {
  if (mass >= 1) return;
  const float sum = weigh(1);
  const float log_sum = ln(sum);
  float entropy = 0;
  for (const Candidate& c : best_) {
    if (c.p > 0) entropy += (c.p / sum) * (log_sum - (c.logit - best_[0].logit));
  }
  other_.assign(best_.begin(), best_.end());
  for (size_t i = 0; i < other_.size(); ++i) {
    const float information = log_sum - (best_[i].logit - best_[0].logit);
    other_[i].key = bits_of(std::abs(information - entropy));  // not negative: orders like the float
    other_[i].id = static_cast<int32_t>(i);
  }
  std::sort(other_.begin(), other_.end());
  float held = 0;
  for (const Candidate& c : other_) {
    if (held >= mass) best_[c.id].id = -1;
    held += c.p / sum;
  }
  std::erase_if(best_, [](const Candidate& c) { return c.id < 0; });
}

// The fewest likeliest that hold `mass`, but one.
void Sampler::keep_top_p(float mass) {
  if (mass >= 1) return;
  const float sum = weigh(1);
  float held = 0;
  size_t count = 0;
  while (count < best_.size() && (count == 0 || held < mass)) held += best_[count++].p / sum;
  best_.resize(count);
}

// Those at least `ratio` times as likely as the likeliest.
void Sampler::keep_min_p(float ratio) {
  if (ratio <= 0) return;
  weigh(1);
  size_t count = 1;
  while (count < best_.size() && best_[count].p >= ratio) ++count;
  best_.resize(count);
}

// The first candidate whose running sum exceeds u times the whole.
int32_t Sampler::draw(float temperature, float u) {
  const float target = u * weigh(temperature);
  float sum = 0;
  for (const Candidate& c : best_) {
    sum += c.p;
    if (sum > target) return c.id;
  }
  return best_[0].id;  // only if the product rounded up to the whole sum
}

Score Sampler::score(std::span<const float> logits, int32_t id, int top) {
  std::copy_n(logits.begin(), logits_.size(), logits_.begin());
  sort(0);
  const float log_sum = ln(weigh(1));
  const auto logprob = [&](float logit) { return (logit - best_[0].logit) - log_sum; };
  top_.clear();
  for (size_t i = 0; i < std::min(static_cast<size_t>(top), best_.size()); ++i)
    top_.push_back({best_[i].id, logprob(best_[i].logit)});
  return {logprob(logits[id]), top_};
}

}  // namespace juno::engine
