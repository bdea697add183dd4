// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "base/math.h"
#include "base/philox.h"

namespace juno::engine {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(int n, uint32_t seed, float scale = 3) {
  std::mt19937 gen(seed);
  std::normal_distribution<float> dist(0, scale);
  std::vector<float> logits(n);
  for (float& l : logits) l = dist(gen);
  return logits;
}

int32_t pick(const SamplingParams& p, const std::vector<float>& logits, int64_t position = 0,
             const std::vector<int32_t>& history = {}) {
  Sampler sampler(static_cast<int32_t>(logits.size()));
  return sampler.pick(p, logits, history, position).id;
}

// How often each token comes in n draws at positions 0 … n-1.
std::map<int32_t, double> frequencies(const SamplingParams& p, const std::vector<float>& logits,
                                      int n = 20000) {
  Sampler sampler(static_cast<int32_t>(logits.size()));
  std::map<int32_t, double> count;
  for (int i = 0; i < n; ++i) count[sampler.pick(p, logits, {}, i).id] += 1.0 / n;
  return count;
}

TEST(Greedy, TakesTheLowestIdAmongEqualMaxima) {
  EXPECT_EQ(pick({}, {1, 5, 3, 5, 5}), 1);
  EXPECT_EQ(pick({}, {-0.0f, 0.0f}), 0);
  EXPECT_EQ(pick({}, {-3, -2, -2}), 1);
}

TEST(Greedy, NeverLooksAtPaddingRows) {
  Sampler sampler(3);
  const std::vector<float> logits = {1, 2, 0, 100, 100};
  EXPECT_EQ(sampler.pick({}, logits, {}, 0).id, 1);
  for (int position = 0; position < 2000; ++position) {
    EXPECT_LT(sampler.pick({.temperature = 5}, logits, {}, position).id, 3);
  }
}

TEST(Greedy, AppliesBiasAndPenalties) {
  EXPECT_EQ(pick({.logit_bias = {{2, 10.0f}}}, {5, 4, 0}), 2);
  EXPECT_EQ(pick({.logit_bias = {{0, -100.0f}}}, {5, 4, 0}), 1);
  EXPECT_EQ(pick({.repeat_penalty = 1.5f}, {5, 4, 0}, 1, {0}), 1);
  EXPECT_EQ(pick({.repeat_penalty = 1.5f}, {-4, -5, -9}, 1, {0}), 1) << "a negative logit is multiplied";
  EXPECT_EQ(pick({.presence_penalty = 1.5f}, {5, 4, 0}, 1, {0}), 1);
  EXPECT_EQ(pick({.frequency_penalty = 0.4f}, {5, 4, 0}, 3, {0, 0}), 0);
  EXPECT_EQ(pick({.frequency_penalty = 0.4f}, {5, 4, 0}, 3, {0, 0, 0}), 1);
}

TEST(Penalties, LookBackOnTheLastTokensOnly) {
  SamplingParams p{.repeat_penalty = 2, .repeat_last_n = 2};
  EXPECT_EQ(pick(p, {5, 4, 0}, 3, {0, 2, 2}), 0);
  EXPECT_EQ(pick(p, {5, 4, 0}, 3, {2, 0, 2}), 1);
  p.repeat_last_n = 0;
  EXPECT_EQ(pick(p, {5, 4, 0}, 3, {0, 0, 0}), 0);
  p.repeat_last_n = -1;
  EXPECT_EQ(pick(p, {5, 4, 0}, 3, {0, 2, 2, 2, 2, 2}), 1);
}

TEST(Penalties, LeaveNoTraceForTheNextPick) {
  Sampler sampler(3);
  const std::vector<int32_t> history = {0, 0};
  EXPECT_EQ(sampler.pick({.repeat_penalty = 2}, std::vector<float>{5, 4, 0}, history, 2).id, 1);
  EXPECT_EQ(sampler.pick({.repeat_penalty = 2}, std::vector<float>{5, 4, 0}, {}, 2).id, 0);
}

TEST(Penalties, IgnoreTokensOutsideTheVocabulary) {
  EXPECT_EQ(pick({.repeat_penalty = 2}, {5, 4, 0}, 2, {99, 1}), 0);
}

TEST(Penalties, StayFinite) {
  const float huge = std::numeric_limits<float>::max();
  SamplingParams p{.temperature = 1, .repeat_penalty = 0.001f};
  EXPECT_EQ(pick(p, {huge, 0}, 1, {0, 1}), 0);
}

// §10 written out plainly, for temperature alone.
int32_t pick_at(const std::vector<float>& logits, float u, float temperature = 1) {
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  std::vector<float> p;
  float sum = 0;
  for (int32_t id : ids) {
    p.push_back(juno::exp((logits[id] - logits[ids[0]]) / temperature));
    sum += p.back();
  }
  const float target = u * sum;
  float run = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    run += p[i];
    if (run > target) return ids[i];
  }
  return ids[0];
}

int32_t defined(const std::vector<float>& logits, float temperature, uint64_t seed, int64_t position) {
  return pick_at(logits, uniform(philox(seed, static_cast<uint64_t>(position), 0)[0]), temperature);
}

TEST(Draw, IsTheDefinition) {
  for (int n : {1, 2, 10, 511, 513, 5000}) {
    auto logits = random_logits(n, static_cast<uint32_t>(n));
    for (int i = 0; i + 2 < n; i += 3) logits[i + 2] = logits[i];  // ties
    for (int64_t position = 0; position < 50; ++position) {
      ASSERT_EQ(pick({.temperature = 0.8f, .seed = 7}, logits, position), defined(logits, 0.8f, 7, position))
          << n;
    }
  }
}

TEST(Draw, TopKAboveAndBelowTheRadixSortAgree) {
  const auto logits = random_logits(2000, 3, 0.1f);
  SamplingParams wide{.temperature = 1, .top_k = 2000, .seed = 1}, off{.temperature = 1, .seed = 1};
  for (int64_t position = 0; position < 100; ++position)
    EXPECT_EQ(pick(wide, logits, position), pick(off, logits, position));
}

TEST(Draw, FollowsTheSoftmax) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  const auto f = frequencies({.temperature = 1, .seed = 42}, logits);
  EXPECT_NEAR(f.at(0), 0.5, 0.015);
  EXPECT_NEAR(f.at(1), 0.3, 0.015);
  EXPECT_NEAR(f.at(2), 0.2, 0.015);
  const auto hot = frequencies({.temperature = 2, .seed = 42}, logits);
  const double z = std::sqrt(0.5) + std::sqrt(0.3) + std::sqrt(0.2);
  EXPECT_NEAR(hot.at(0), std::sqrt(0.5) / z, 0.015);
}

TEST(C52, SeedAndPositionDecide) {
  const auto logits = random_logits(1000, 1, 0.5f);
  const SamplingParams p{.temperature = 1, .seed = 5};
  std::vector<int32_t> a, b, other_seed;
  for (int64_t i = 0; i < 50; ++i) a.push_back(pick(p, logits, i));
  Sampler reused(1000);
  for (int64_t i = 0; i < 50; ++i) {
    reused.pick({.temperature = 3, .top_p = 0.5f, .seed = 9}, random_logits(1000, 77), {},
                i);  // a stranger between
    b.push_back(reused.pick(p, logits, {}, i).id);
    other_seed.push_back(pick({.temperature = 1, .seed = 6}, logits, i));
  }
  EXPECT_EQ(a, b);
  EXPECT_NE(a, other_seed);
  EXPECT_GT(std::set<int32_t>(a.begin(), a.end()).size(), 25u);
}

TEST(TopK, KeepsTheBestAndTheLowerIdAmongEqual) {
  const auto f = frequencies({.temperature = 10, .top_k = 2}, {1, 3, 2, 2, 0});
  EXPECT_EQ(f.size(), 2u);
  EXPECT_TRUE(f.contains(1) && f.contains(2));
  EXPECT_EQ(frequencies({.temperature = 10, .top_k = 1}, {1, 3, 3}).size(), 1u);
}

TEST(TopP, KeepsTheFewestThatHoldTheMass) {
  const std::vector<float> logits = {std::log(0.2f), std::log(0.5f), std::log(0.3f)};
  EXPECT_EQ(frequencies({.temperature = 1, .top_p = 0.49f}, logits).size(), 1u);
  const auto two = frequencies({.temperature = 1, .top_p = 0.75f}, logits);
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two.at(1), 0.625, 0.02);
  EXPECT_EQ(frequencies({.temperature = 1, .top_p = 0.85f}, logits).size(), 3u);
}

TEST(TopP, OfZeroKeepsTheBest) {
  const auto one = frequencies({.temperature = 2, .top_p = 0}, {1, 2, 2, 0}, 500);
  EXPECT_EQ(one.size(), 1u);
  EXPECT_TRUE(one.contains(1));
}

TEST(TopP, IsMeasuredBeforeTheTemperature) {
  const std::vector<float> logits = {std::log(0.2f), std::log(0.5f), std::log(0.3f)};
  EXPECT_EQ(frequencies({.temperature = 50, .top_p = 0.49f}, logits).size(), 1u);
}

TEST(MinP, KeepsWhatIsLikelyEnoughBesideTheBest) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.6f), std::log(0.3f)};
  EXPECT_EQ(frequencies({.temperature = 1, .min_p = 0.6f}, logits).size(), 1u);
  EXPECT_EQ(frequencies({.temperature = 1, .min_p = 0.4f}, logits).size(), 2u);
  EXPECT_EQ(frequencies({.temperature = 1, .min_p = 0.1f}, logits).size(), 3u);
  EXPECT_EQ(frequencies({.temperature = 1, .min_p = 1.0f}, logits).size(), 1u);
}

TEST(Typical, KeepsWhatIsNearestToTheEntropy) {
  // H = 1.03 nats; informations: 0.69, 1.20, 1.61: nearest are 1.20 (0.17), then 0.69 (0.34), then 1.61
  // (0.58).
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  const auto one = frequencies({.temperature = 1, .typical_p = 0.2f}, logits);
  EXPECT_EQ(one.size(), 1u);
  EXPECT_TRUE(one.contains(1)) << "not the likeliest";
  const auto two = frequencies({.temperature = 1, .typical_p = 0.6f}, logits);
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two.at(0), 0.625, 0.02);
  EXPECT_EQ(frequencies({.temperature = 1, .typical_p = 0.9f}, logits).size(), 3u);
}

TEST(Logprob, IsOfTheUnchangedLogits) {
  Sampler sampler(3);
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f), 50};
  const Pick greedy = sampler.pick({.logprobs = true}, logits, {}, 0);
  EXPECT_NEAR(greedy.score.value().logprob, std::log(0.5), 1e-6);
  const Pick biased = sampler.pick(
      {.temperature = 2, .top_k = 1, .logit_bias = {{2, 9.0f}}, .logprobs = true}, logits, {}, 0);
  EXPECT_EQ(biased.id, 2);
  EXPECT_NEAR(biased.score.value().logprob, std::log(0.2), 1e-6);
  EXPECT_FALSE(sampler.pick({}, logits, {}, 0).score);
}

TEST(Logprob, TopIsInOrderOfProbabilityThenId) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.3f), std::log(0.2f),
                                     std::log(0.3f), std::log(0.1f), 50};
  Sampler sampler(5);
  const Pick got = sampler.pick(
      {.temperature = 1, .top_k = 1, .logit_bias = {{1, -100.0f}}, .logprobs = true, .top_logprobs = 4},
      logits, {}, 0);
  EXPECT_EQ(got.id, 3);
  ASSERT_EQ(got.score->top.size(), 4u);
  const std::vector<int32_t> ids = {1, 3, 2, 0};
  for (size_t i = 0; i < ids.size(); ++i) {
    const Scored& one = got.score->top[i];
    EXPECT_EQ(one.id, ids[i]) << "a ban changes no probability";
    EXPECT_NEAR(one.logprob, logits[one.id], 1e-6);
    EXPECT_EQ(one.logprob, Sampler(5).score(logits, one.id, 0).logprob) << "to the bit";
  }
  EXPECT_EQ(got.score->logprob, got.score->top[1].logprob);
  EXPECT_EQ(sampler.score(logits, 0, 20).top.size(), 5u) << "there are no more";
}

std::vector<uint64_t> mask_of(std::initializer_list<int> ids, size_t words = 1) {
  std::vector<uint64_t> bits(words);
  for (int id : ids) bits[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  return bits;
}

TEST(Mask, WhatItForbidsNeverComes) {
  auto logits = random_logits(1000, 4);
  logits[3] = std::numeric_limits<float>::max();
  const auto bits = mask_of({5, 64, 700, 999}, 16);
  Sampler sampler(1000);
  const std::vector<int32_t> history = {5, 5, 3, 700, 3};
  for (float temperature : {0.0f, 0.01f, 1.0f, 100.0f}) {
    for (int top_k : {0, 1, 3, 600}) {
      std::set<int32_t> seen;
      for (int64_t position = 0; position < 300; ++position) {
        const SamplingParams p{.temperature = temperature,
                               .top_k = top_k,
                               .typical_p = position % 2 ? 1 : 0.9f,
                               .repeat_penalty = 1.5f,
                               .presence_penalty = -2,
                               .logit_bias = {{3, 100.0f}, {4, 100.0f}},
                               .seed = 1};
        seen.insert(sampler.pick(p, logits, history, position, {.mask = bits}).id);
      }
      for (int32_t id : seen) EXPECT_TRUE(id == 5 || id == 64 || id == 700 || id == 999) << id;
      EXPECT_TRUE(seen.size() == 4 || temperature != 100 || top_k != 0);
    }
  }
}

TEST(Mask, LeavesTheChoiceAmongTheAllowedAsItIs) {
  // As if the others had never been in the vocabulary.
  const auto logits = random_logits(600, 9, 1);
  std::vector<uint64_t> bits(10);
  std::vector<float> few;
  std::vector<int32_t> ids;
  for (int id = 0; id < 600; id += 7) {
    bits[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
    few.push_back(logits[id]);
    ids.push_back(id);
  }
  Sampler sampler(600);
  for (int64_t position = 0; position < 200; ++position) {
    const SamplingParams p{.temperature = 0.9f, .top_p = 0.95f, .min_p = 0.01f, .seed = 3};
    EXPECT_EQ(sampler.pick(p, logits, {}, position, {.mask = bits}).id, ids[pick(p, few, position)]);
  }
}

TEST(Mask, EndTokensFollowMayEndAlone) {
  const std::vector<float> logits = {1, 2, 3, 9};
  const std::vector<int32_t> end = {3};
  Sampler sampler(4);
  EXPECT_EQ(sampler.pick({}, logits, {}, 0, {.ends = end}).id, 3);
  EXPECT_EQ(sampler.pick({}, logits, {}, 0, {.ends = end, .may_end = false}).id, 2);
  EXPECT_EQ(sampler.pick({}, logits, {}, 0, {.mask = mask_of({1}), .ends = end}).id, 3);
  EXPECT_EQ(sampler.pick({}, logits, {}, 0, {.mask = mask_of({1, 3}), .ends = end, .may_end = false}).id, 1);
}

TEST(Mask, WithNothingLeftThereIsNoPick) {
  const std::vector<float> logits(700, 1.0f);
  const std::vector<int32_t> history = {3, 5}, ends = {3};
  const std::vector<uint64_t> only_end = mask_of({3});
  Sampler sampler(700);
  for (float temperature : {0.0f, 1.0f}) {
    for (int top_k : {0, 5, 600}) {
      const SamplingParams p{
          .temperature = temperature, .top_k = top_k, .repeat_penalty = 1.5f, .logprobs = true};
      EXPECT_EQ(sampler.pick(p, logits, history, 0, {.mask = mask_of({}, 11)}).id, -1);
      const Allowed no_end{.mask = only_end, .ends = ends, .may_end = false};
      EXPECT_EQ(sampler.pick(p, logits, history, 0, no_end).id, -1);
    }
  }
}

TEST(Bias, OfMinusAHundredBans) {
  const float huge = std::numeric_limits<float>::max();
  const std::vector<float> logits = {huge, 1, -huge};
  EXPECT_EQ(pick({.logit_bias = {{0, -100.0f}}}, logits), 1);
  EXPECT_EQ(pick({.logit_bias = {{0, -100.0f}, {1, -100.0f}}}, logits), 2);
  EXPECT_EQ(pick({.temperature = 100, .logit_bias = {{0, -100.0f}, {1, -100.0f}, {2, -100.0f}}}, logits), -1);
  EXPECT_FALSE(frequencies({.temperature = 100, .logit_bias = {{0, -100.0f}}}, {3, 2, 1}).contains(0));
}

TEST(Penalties, PresenceAndFrequencyCountFromTheReplysStart) {
  SamplingParams p{.presence_penalty = 1.5f, .reply_start = 2};
  EXPECT_EQ(pick(p, {5, 4, 0}, 2, {0, 0}), 0) << "the prompt is not counted";
  EXPECT_EQ(pick(p, {5, 4, 0}, 3, {2, 2, 0}), 1);
  p = {.frequency_penalty = 0.6f, .reply_start = 2};
  EXPECT_EQ(pick(p, {5, 4, 0}, 4, {0, 0, 0}), 0) << "once";
  EXPECT_EQ(pick(p, {5, 4, 0}, 5, {0, 0, 0, 0}), 1) << "twice";
  p = {.repeat_penalty = 1.5f, .reply_start = 2};
  EXPECT_EQ(pick(p, {5, 4, 0}, 2, {0, 2}), 1) << "the repeat penalty is of prompt and reply";
}

TEST(C52, StreamsDrawNumbersOfTheirOwn) {
  const auto logits = random_logits(1000, 1, 0.5f);
  std::vector<int32_t> plain, first, second;
  for (int64_t i = 0; i < 30; ++i) {
    plain.push_back(pick({.temperature = 1, .seed = 5}, logits, i));
    first.push_back(pick({.temperature = 1, .seed = 5, .stream = 0}, logits, i));
    second.push_back(pick({.temperature = 1, .seed = 5, .stream = 1}, logits, i));
    const float u = uniform(philox(5, static_cast<uint64_t>(i), 1)[0]);
    EXPECT_EQ(second.back(), pick_at(logits, u));
  }
  EXPECT_EQ(plain, first);
  EXPECT_NE(first, second);
}

TEST(Sampler, SurvivesExtremeLogits) {
  const float huge = std::numeric_limits<float>::max();
  for (const auto& logits : {std::vector<float>{-huge, huge, 0},
                             {huge, huge, huge},
                             {0, 0, 0},
                             {-huge, -huge, -huge},
                             {1e-45f, -1e-45f, 0}}) {
    for (float t : {1e-30f, 0.01f, 1.0f, 100.0f}) {
      SamplingParams p{
          .temperature = t, .top_k = 2, .typical_p = 0.9f, .top_p = 0.9f, .min_p = 0.1f, .logprobs = true};
      Sampler sampler(3);
      const Pick got = sampler.pick(p, logits, {}, 1);
      EXPECT_GE(got.id, 0);
      EXPECT_LT(got.id, 3);
      EXPECT_FALSE(std::isnan(got.score->logprob));
    }
  }
}

TEST(Sampler, EveryTokenOfALargeFlatVocabularyCanCome) {
  EXPECT_GT(frequencies({.temperature = 1}, std::vector<float>(50, 1.0f), 5000).size(), 49u);
}

// The `count` greatest logits of the first `vocab`, as a backend hands them out.
std::vector<ops::TopLogit> greatest(const std::vector<float>& logits, int64_t count) {
  std::vector<ops::TopLogit> all;
  for (size_t id = 0; id < logits.size(); ++id) all.push_back({logits[id], static_cast<int32_t>(id)});
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.logit > b.logit; });
  all.resize(static_cast<size_t>(count));
  return all;
}

// Parameters of all kinds that the greatest logits may be enough for.
SamplingParams some_params(std::mt19937& gen) {
  const auto one_of = [&](std::initializer_list<float> values) {
    return values.begin()[gen() % values.size()];
  };
  SamplingParams p{.temperature = one_of({0, 0.3f, 0.7f, 2}),
                   .top_k = 1 + static_cast<int>(gen() % 60),
                   .typical_p = one_of({1, 1, 0.9f}),
                   .top_p = one_of({1, 0.9f, 0.5f}),
                   .min_p = one_of({0, 0, 0.05f}),
                   .repeat_penalty = one_of({1, 1, 1.3f}),
                   .repeat_last_n = static_cast<int>(gen() % 40) - 1,
                   .presence_penalty = one_of({0, 0, 0.7f}),
                   .frequency_penalty = one_of({0, 0, 0.4f}),
                   .reply_start = static_cast<int64_t>(gen() % 20),
                   .seed = gen()};
  for (uint32_t i = gen() % 4; i > 0; --i)
    p.logit_bias.emplace_back(static_cast<int32_t>(gen() % 40), one_of({-100, -1.5f, 0}));
  return p;
}

TEST(Greatest, GiveTheTokenThatAllLogitsGiveOrNone) {
  constexpr int kVocab = 700, kMost = 128;
  std::mt19937 gen(5);
  Sampler sampler(kVocab);
  int picks = 0, none = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    std::vector<float> logits = random_logits(kVocab, i, i % 3 == 0 ? 0.2f : 3);
    if (i % 4 == 0)
      for (float& l : logits) l = std::round(l);      // many equals, zeros of both signs
    for (int id = 0; id < 40; ++id) logits[id] += 5;  // those that the parameters and the history speak of
    std::vector<int32_t> history(gen() % 30), ends;
    for (int32_t& id : history) id = static_cast<int32_t>(gen() % 45) - 1;
    std::vector<uint64_t> mask;
    if (i % 5 == 0) mask.assign(11, gen() | uint64_t{gen()} << 32);
    if (i % 2 == 0) ends = {static_cast<int32_t>(gen() % 40), 699, 5000};
    const Allowed allowed{.mask = mask, .ends = ends, .may_end = i % 4 == 0};
    const SamplingParams p = some_params(gen);
    const Need of = need(p, mask.empty() ? std::ssize(ends) : kMost, kMost);
    ASSERT_EQ(of.all, "");
    const int32_t all = sampler.pick(p, logits, history, i, allowed).id;
    const auto few = sampler.pick(p, greatest(logits, of.greatest), history, i, allowed);
    ++(few ? picks : none);
    ASSERT_TRUE(few || !mask.empty() || of.greatest == kMost) << i << ": " << of.greatest;
    if (few) ASSERT_EQ(few->id, all) << i;
    ASSERT_EQ(sampler.pick(p, greatest(logits, kVocab), history, i, allowed)->id, all) << i;
  }
  EXPECT_GT(picks, 3000);
  EXPECT_GT(none, 10) << "some masks leave too few";
}

TEST(Greatest, SayWhenNoTokenIsAllowed) {
  const std::vector<float> logits = {3, 2, 1};
  const std::vector<uint64_t> mask = {0};
  Sampler sampler(3);
  EXPECT_EQ(sampler.pick({}, greatest(logits, 3), {}, 0, {.mask = mask})->id, -1);
  EXPECT_EQ(sampler.pick({.temperature = 1, .top_k = 2}, greatest(logits, 3), {}, 0, {.mask = mask})->id, -1);
  EXPECT_FALSE(sampler.pick({}, greatest(logits, 2), {}, 0, {.mask = mask}));
}

TEST(Greatest, AreAskedForOnlyWhereTheyCanDecide) {
  EXPECT_EQ(need({}, 0, 128).greatest, 1);
  EXPECT_EQ(need({.temperature = 1, .top_k = 50}, 0, 128).greatest, 50);
  EXPECT_EQ(need({.temperature = 1, .top_k = 50}, 3, 128).greatest, 53);
  EXPECT_EQ(need({.temperature = 1, .top_k = 50, .repeat_penalty = 2, .repeat_last_n = 9}, 0, 128).greatest,
            59);
  EXPECT_EQ(need({.repeat_penalty = 2, .repeat_last_n = -1}, 0, 128).greatest, 128);
  EXPECT_EQ(need({.logit_bias = {{3, -100.0f}, {4, -1.0f}}}, 0, 128).greatest, 3);
  EXPECT_EQ(need({.temperature = 1}, 0, 128).all, "no top_k");
  EXPECT_EQ(need({.temperature = 1, .top_k = 129}, 0, 128).all, "a large top_k");
  EXPECT_EQ(need({.logprobs = true}, 0, 128).all, "logprobs");
  for (const SamplingParams& p :
       {SamplingParams{.repeat_penalty = 0.9f}, SamplingParams{.presence_penalty = -1},
        SamplingParams{.frequency_penalty = -1}, SamplingParams{.logit_bias = {{3, 0.5f}}}})
    EXPECT_EQ(need(p, 0, 128).all, "a logit is raised");
}

TEST(Validate, NamesTheParameterItsValueAndItsRange) {
  const std::vector<std::pair<const char*, SamplingParams>> bad = {
      {"temperature", {.temperature = -1}},
      {"temperature", {.temperature = kNan}},
      {"temperature", {.temperature = kInf}},
      {"temperature", {.temperature = 100.5f}},
      {"top_k", {.top_k = -1}},
      {"typical_p", {.typical_p = 0}},
      {"typical_p", {.typical_p = kNan}},
      {"top_p", {.top_p = -0.1f}},
      {"top_p", {.top_p = 1.5f}},
      {"top_p", {.top_p = kNan}},
      {"min_p", {.min_p = -0.1f}},
      {"min_p", {.min_p = kNan}},
      {"repeat_penalty", {.repeat_penalty = 0}},
      {"repeat_penalty", {.repeat_penalty = kNan}},
      {"repeat_last_n", {.repeat_last_n = -2}},
      {"presence_penalty", {.presence_penalty = 3}},
      {"frequency_penalty", {.frequency_penalty = kInf}},
      {"reply_start", {.reply_start = -1}},
      {"top_logprobs", {.top_logprobs = -1}},
      {"top_logprobs", {.top_logprobs = 21}},
      {"logit_bias", {.logit_bias = {{3, 1.0f}}}},
      {"logit_bias", {.logit_bias = {{-1, 1.0f}}}},
      {"logit_bias", {.logit_bias = {{0, kNan}}}},
      {"logit_bias", {.logit_bias = {{0, 101.0f}}}},
  };
  for (const auto& [name, params] : bad) {
    const Result<void> result = validate(params, 3);
    ASSERT_FALSE(result) << name;
    EXPECT_EQ(result.error().code, Code::kUsage);
    EXPECT_NE(result.error().message.find(name), std::string::npos) << result.error().message;
  }
  EXPECT_TRUE(validate({}, 3));
  EXPECT_TRUE(validate({.temperature = 100,
                        .top_k = 1 << 30,
                        .typical_p = 1,
                        .top_p = 0,
                        .min_p = 1,
                        .repeat_penalty = 10,
                        .repeat_last_n = -1,
                        .presence_penalty = -2,
                        .frequency_penalty = 2,
                        .logit_bias = {{0, -100.0f}, {2, 100.0f}},
                        .seed = ~uint64_t{0}},
                       3));
}

}  // namespace
}  // namespace juno::engine
