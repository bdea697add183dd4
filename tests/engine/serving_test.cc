// SPDX-License-Identifier: Apache-2.0
// Many requests at once: the cache, priorities, preemption and neighbours change when a token comes, never
// which.
#include <chrono>
#include <random>
#include <set>

#include "engine/engine_fixture.h"

namespace juno::engine {
namespace {

using Clock = std::chrono::steady_clock;

Request sampled(std::vector<int32_t> prompt, int64_t tokens, uint64_t seed = 1) {
  const auto last = static_cast<int64_t>(prompt.size()) - 1;
  return {.prompt = std::move(prompt),
          .max_tokens = tokens,
          .sampling = {.temperature = 0.9f, .seed = seed, .logprobs = true},
          .logits_at = {last},
          .every_logits = true};
}

Outcome ask(Engine& engine, Request request) {
  Outcome outcome;
  take(engine.submit(listen(std::move(request), outcome)));
  run(engine);
  return outcome;
}

// What the same engine computes without its cache.
Outcome cold(Engine& engine, Request request) {
  request.reuse = 0;
  request.keep = false;
  return ask(engine, std::move(request));
}

void expect_same(const Outcome& a, const Outcome& b, const std::string& what = "") {
  EXPECT_EQ(a.logits.value(), b.logits.value()) << what;
  EXPECT_EQ(a.tokens, b.tokens) << what;
  EXPECT_EQ(a.logprobs, b.logprobs) << what;
}

void expect_idle(const Engine& engine) {
  const auto idle = engine.check_idle();
  EXPECT_TRUE(idle) << idle.error().message;
  EXPECT_EQ(engine.counters().pages_used, 0);
}

TEST(C36, ConversationsGiveTheBitsOfAColdRunTurnByTurn) {
  // Global and sliding windows, scaled frequencies, experts, biases.
  for (const char* name : {"llama-untied", "gemma3-q8_0", "qwen3moe", "llama-yarn", "llama3-rope"}) {
    Machine m = machine(fixture(name), {.context = 400, .chunk = 40, .sequences = 2});
    std::mt19937 random(3);
    int64_t cached = 0, prompts = 0;
    for (uint32_t talk = 0; talk < 12; ++talk) {
      std::vector<int32_t> ids = some_ids(1 + static_cast<int>(random() % 70), 200, talk % 7);
      for (uint32_t turn = 0; turn < 3; ++turn) {
        const Outcome warm = ask(*m.engine, sampled(ids, 5, turn));
        expect_same(warm, cold(*m.engine, sampled(ids, 5, turn)), name);
        cached += warm.finish->cached_tokens;
        prompts += warm.finish->prompt_tokens;
        ids = joined(joined(ids, warm.tokens), some_ids(1 + static_cast<int>(random() % 20), 200, turn));
      }
    }
    EXPECT_GT(cached, prompts / 2) << name;
    expect_idle(*m.engine);
  }
}

TEST(C36, ARepeatedPromptIsComputedOnlyInItsLastToken) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 64});
  for (int count : {1, 2, 63, 64, 65, 128, 129, 200}) {
    const Request request{.prompt = some_ids(count, 200, static_cast<uint32_t>(count)), .max_tokens = 3};
    Outcome first, again;
    take(m.engine->submit(listen(request, first)));
    run(*m.engine);
    take(m.engine->submit(listen(request, again)));
    run(*m.engine);
    EXPECT_EQ(again.finish->cached_tokens, count - 1);
    EXPECT_EQ(again.tokens, first.tokens);
  }
  expect_idle(*m.engine);
}

// An adapter's name and generation, and whose it is, are the salt.
TEST(C37, WhatAnotherAdapterOrAnOlderOneComputedIsNotUsed) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 64, .sequences = 2});
  const auto cached = [&](const std::string& salt) {
    return ask(*m.engine, {.prompt = some_ids(150, 200), .max_tokens = 1, .salt = salt})
        .finish->cached_tokens;
  };
  EXPECT_EQ(cached("adapter 1"), 0);
  EXPECT_EQ(cached("adapter 1"), 149);
  EXPECT_EQ(cached("adapter 2"), 0);
  EXPECT_EQ(cached(""), 0);
  EXPECT_EQ(cached("adapter 2"), 149);
}

TEST(C61, NoTenantMeetsTheCacheOfAnother) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 64, .sequences = 4});
  std::vector<Outcome> got(4);
  const auto prompt = some_ids(100, 200);
  for (size_t i = 0; i < 4; ++i)
    take(m.engine->submit(listen({.prompt = prompt,
                                  .max_tokens = 4,
                                  .tenant = std::to_string(i),
                                  .salt = std::to_string(i),
                                  .session = std::to_string(i)},
                                 got[i])));
  run(*m.engine);
  for (const Outcome& o : got) EXPECT_EQ(o.finish->cached_tokens, 0);
  EXPECT_EQ(m.engine->counters().sessions, 4);
  EXPECT_EQ(m.engine->counters().pages_cached, 8) << "nothing is shared";
  const Request other{.prompt = prompt, .max_tokens = 1, .salt = "2", .session = "1"};
  EXPECT_EQ(ask(*m.engine, other).finish->cached_tokens, 99) << "the salt decides, not the session's name";
}

TEST(C52, NeighboursChangeNoBit) {
  for (int neighbours : {1, 7, 31}) {
    Machine m = machine(kTiny, {.context = 200, .chunk = 48, .sequences = 32});
    const Request request = sampled(some_ids(70, 200, 77), 30, 9);
    const Outcome alone = cold(*m.engine, request);
    for (bool warm : {false, true}) {
      std::vector<Outcome> others(static_cast<size_t>(neighbours));
      Outcome got;
      for (int i = 0; i < neighbours; ++i) {
        if (i == neighbours / 2) take(m.engine->submit(listen(request, got)));
        take(m.engine->submit(
            listen(sampled(some_ids(3 + 5 * i, 200, static_cast<uint32_t>(i)), 10 + i, 4), others[i])));
      }
      run(*m.engine);
      EXPECT_EQ(got.finish->cached_tokens > 0, warm);
      expect_same(got, alone, fmt::format("{} neighbours, warm {}", neighbours, warm));
      for (int i = 0; i < neighbours; ++i) EXPECT_EQ(others[i].tokens.size(), static_cast<size_t>(10 + i));
    }
    expect_idle(*m.engine);
  }
}

TEST(C52, PreemptionChangesNoBit) {
  // Six sequences that grow to four pages each, in eight pages.
  Machine m = machine(kTiny, {.context = 256, .chunk = 64, .sequences = 6, .positions = 8 * 64});
  std::vector<Outcome> got(6), alone(6);
  const auto request = [](uint32_t i) {
    Request r = sampled(some_ids(20 + 17 * static_cast<int>(i), 200, i), 120, i);
    r.keep = i % 2 == 0;
    return r;
  };
  for (uint32_t i = 0; i < 6; ++i) take(m.engine->submit(listen(request(i), got[i])));
  while (*m.engine->step()) ASSERT_TRUE(m.engine->check());
  EXPECT_GT(m.engine->counters().preempted, 3);
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(got[i].tokens.size(), 120u);
    EXPECT_EQ(got[i].finish->cached_tokens, 0);
    expect_same(got[i], cold(*m.engine, request(i)), std::to_string(i));
  }
  expect_idle(*m.engine);
}

TEST(Serving, TheFirstOfTheHighestPriorityGoesOnInEveryStep) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 64, .sequences = 8, .positions = 256});
  std::vector<Outcome> got(9);
  for (size_t i = 0; i < 8; ++i)
    take(m.engine->submit(listen({.prompt = some_ids(30, 200, static_cast<uint32_t>(i)),
                                  .max_tokens = 150,
                                  .priority = i == 5 ? Priority::kHigh : Priority::kLow},
                                 got[i])));
  ASSERT_TRUE(*m.engine->step());
  for (size_t n = 2; n <= 150; ++n) {
    ASSERT_TRUE(*m.engine->step());
    ASSERT_EQ(got[5].tokens.size(), n);
  }
  EXPECT_TRUE(got[5].finish) << "it never waited";
  EXPECT_FALSE(got[0].finish) << "nor did it wait for who came first";
  run(*m.engine);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(got[i].tokens.size(), 150u) << "nobody starves";
  expect_idle(*m.engine);
}

TEST(Serving, PrioritiesOrderTheQueue) {
  Machine m = machine(kTiny, {.context = 128, .chunk = 64});
  std::vector<int> order;
  const auto submit = [&](int name, Priority priority) {
    Request r{.prompt = some_ids(20, 200), .max_tokens = 3, .priority = priority};
    r.on_finish = [&order, name](Finish&) { order.push_back(name); };
    take(m.engine->submit(std::move(r)));
  };
  submit(1, Priority::kLow);
  submit(2, Priority::kNormal);
  submit(3, Priority::kHigh);
  submit(4, Priority::kLow);
  submit(5, Priority::kHigh);
  run(*m.engine);
  EXPECT_EQ(order, (std::vector<int>{3, 5, 2, 1, 4}));
}

TEST(Serving, ALongPromptStallsNeitherDecodesNorShortPrompts) {
  Machine m = machine(kTiny, {.context = 2000, .chunk = 32, .sequences = 4});
  Outcome decoding, longest, brief;
  take(m.engine->submit(listen({.prompt = some_ids(5, 200), .max_tokens = 60}, decoding)));
  ASSERT_TRUE(*m.engine->step());
  take(m.engine->submit(listen({.prompt = some_ids(1500, 200, 2), .max_tokens = 2}, longest)));
  for (size_t n = 2; n < 6; ++n) {
    ASSERT_TRUE(*m.engine->step());
    ASSERT_EQ(decoding.tokens.size(), n) << "a token in every step";
  }
  take(m.engine->submit(listen({.prompt = some_ids(20, 200, 3), .max_tokens = 2}, brief)));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(*m.engine->step());
  EXPECT_EQ(brief.tokens.size(), 1u);
  EXPECT_TRUE(longest.tokens.empty());
  run(*m.engine);
  EXPECT_EQ(longest.tokens.size(), 2u);
}

TEST(Serving, PastItsDeadlineASequenceEndsWhereverItIs) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 16});
  const auto expect_late = [&](const Outcome& got) {
    ASSERT_TRUE(got.finish);
    EXPECT_EQ(got.finish->reason, FinishReason::kError);
    EXPECT_EQ(got.finish->error->code, Code::kBusy);
    EXPECT_NE(got.finish->error->message.find("deadline"), std::string::npos);
  };
  Outcome running, waiting, unhurried;
  Request request{.prompt = some_ids(60, 200), .max_tokens = 100};
  take(m.engine->submit(listen(request, unhurried)));
  request.deadline = Clock::now() + std::chrono::hours(1);
  const auto id = m.engine->submit(listen(request, running));
  request.deadline = Clock::now() - std::chrono::seconds(1);
  take(m.engine->submit(listen(request, waiting)));
  ASSERT_TRUE(*m.engine->step());
  expect_late(waiting);
  EXPECT_FALSE(running.finish);
  m.engine->cancel(*id);
  run(*m.engine);
  EXPECT_EQ(unhurried.finish->reason, FinishReason::kLength);
  for (size_t tokens : {0, 5}) {  // in prefill, in decode
    Outcome late;
    request = {.prompt = some_ids(60, 200, 9), .max_tokens = 150, .reuse = 0};
    request.deadline = Clock::now() + std::chrono::seconds(1);
    take(m.engine->submit(listen(request, late)));
    ASSERT_TRUE(*m.engine->step());
    while (late.tokens.size() < tokens) ASSERT_TRUE(*m.engine->step());
    EXPECT_GT(m.engine->counters().pages_used, 0);
    while (Clock::now() < *request.deadline) {
    }
    EXPECT_FALSE(*m.engine->step());
    expect_late(late);
    expect_idle(*m.engine);
  }
}

TEST(Serving, CancelFreesThePagesAtOnceInEveryPhase) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 16, .sequences = 2, .positions = 256});
  const auto id_of = [&](Outcome& o, Priority p, uint32_t seed) {
    return take(m.engine->submit(
        listen({.prompt = some_ids(100, 200, seed), .max_tokens = 100, .priority = p, .reuse = 0}, o)));
  };
  for (int phase = 0; phase < 4; ++phase) {
    Outcome got, high;
    const SequenceId id = id_of(got, Priority::kLow, 1);
    SequenceId other = 0;
    for (int i = 0; i < phase && i < 1; ++i) ASSERT_TRUE(*m.engine->step());
    while (phase >= 2 && got.tokens.size() < 5) ASSERT_TRUE(*m.engine->step());
    if (phase == 3) {
      other = id_of(high, Priority::kHigh, 2);
      const int64_t before = m.engine->counters().preempted;
      while (m.engine->counters().preempted == before) ASSERT_TRUE(*m.engine->step());
    }
    m.engine->cancel(id);
    ASSERT_TRUE(got.finish) << phase;
    EXPECT_EQ(got.finish->reason, FinishReason::kCancelled);
    ASSERT_TRUE(m.engine->check());
    m.engine->cancel(other);
    expect_idle(*m.engine);
  }
}

TEST(Serving, FurtherChoicesShareThePromptThatIsComputedOnce) {
  for (int length : {10, 64, 65, 128, 150}) {
    Machine m = machine(kTiny, {.context = 256, .chunk = 32, .sequences = 4});
    const auto prompt = some_ids(length, 200);
    const auto choice = [&](uint64_t i) {
      return Request{.prompt = prompt, .max_tokens = 20, .sampling = {.temperature = 1, .seed = i}};
    };
    std::vector<Outcome> got(4);
    const SequenceId first = take(m.engine->submit(listen(choice(0), got[0])));
    for (size_t i = 1; i < 4; ++i) {
      Request r = choice(i);
      r.after = first;
      take(m.engine->submit(listen(std::move(r), got[i])));
    }
    run(*m.engine);
    EXPECT_EQ(got[0].finish->cached_tokens, 0);
    for (size_t i = 1; i < 4; ++i) EXPECT_EQ(got[i].finish->cached_tokens, length - 1);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i].tokens, cold(*m.engine, choice(i)).tokens) << length;
    expect_idle(*m.engine);
  }
}

TEST(Serving, FurtherChoicesGoOnWithoutTheFirst) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 16, .sequences = 2});
  Outcome first, second;
  const SequenceId id = take(m.engine->submit(listen({.prompt = some_ids(60, 200), .max_tokens = 5}, first)));
  take(m.engine->submit(listen({.prompt = some_ids(60, 200), .max_tokens = 5, .after = id}, second)));
  ASSERT_TRUE(*m.engine->step());
  m.engine->cancel(id);
  run(*m.engine);
  EXPECT_EQ(second.tokens.size(), 5u);
  EXPECT_EQ(second.finish->cached_tokens, 16);
}

TEST(Serving, ACutSpanLeavesTheBitsOfAPromptWithoutIt) {
  for (const auto& [first, count] : {std::pair{0, 10}, {30, 1}, {30, 60}, {64, 64}, {100, 99}, {199, 1}}) {
    Machine m = machine(kTiny, {.context = 256, .chunk = 64, .sequences = 2});
    const auto ids = some_ids(200, 200);
    auto rest = ids;
    rest.erase(rest.begin() + first, rest.begin() + first + count);
    ask(*m.engine, {.prompt = ids, .max_tokens = 0, .session = "s"});
    Request request = sampled(ids, 10);
    request.session = "s";
    request.logits_at = {199 - count};
    Outcome got;
    take(m.engine->cut(listen(request, got), first, count));
    run(*m.engine);
    expect_same(got, cold(*m.engine, sampled(rest, 10)), fmt::format("{} from {}", count, first));
    EXPECT_EQ(got.finish->prompt_tokens, 200 - count);
    EXPECT_GE(got.finish->cached_tokens, std::min(first, 199 - count));
    EXPECT_LE(m.engine->counters().pages_cached, KvPool::pages_for(210 - count) + 1);
    expect_idle(*m.engine);
  }
  Machine m = machine(kTiny, {.context = 256});
  EXPECT_FALSE(m.engine->cut({.prompt = {1, 2, 3}}, 1, 3));
  EXPECT_FALSE(m.engine->cut({.prompt = {1, 2, 3}}, -1, 1));
  EXPECT_FALSE(m.engine->cut({.prompt = {1, 2, 3}}, 1, 0));
  EXPECT_FALSE(m.engine->cut({.prompt = {1, 2, 3}}, 0, 3)) << "nothing is left";
}

TEST(Serving, ACloneGivesTheSameBitsUnderItsOwnSalt) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 64, .sequences = 2});
  const auto ids = some_ids(150, 200);
  ask(*m.engine, {.prompt = ids, .max_tokens = 0, .salt = "a"});
  EXPECT_EQ(take(m.engine->clone(ids, "a", "b")), 150);
  Request request = sampled(joined(ids, {7, 8}), 10);
  request.salt = "b";
  const Outcome got = ask(*m.engine, request);
  EXPECT_EQ(got.finish->cached_tokens, 150);
  expect_same(got, cold(*m.engine, request));
  expect_idle(*m.engine);
}

TEST(Serving, ASessionStaysWarmWhileOthersPassThrough) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 64, .sequences = 2});
  const auto ids = some_ids(100, 200);
  const Outcome first = ask(*m.engine, {.prompt = ids, .max_tokens = 10, .session = "s"});
  const auto flood = [&] {
    for (uint32_t i = 0; i < 10; ++i) ask(*m.engine, {.prompt = some_ids(250, 200, 100 + i)});
  };
  flood();
  Request next{.prompt = joined(joined(ids, first.tokens), {5, 6}), .max_tokens = 5, .session = "s"};
  EXPECT_EQ(ask(*m.engine, next).finish->cached_tokens, 109);
  EXPECT_EQ(m.engine->counters().sessions, 1);
  m.engine->end_session("s");
  EXPECT_EQ(m.engine->counters().sessions, 0);
  EXPECT_LE(ask(*m.engine, next).finish->cached_tokens, 1);
}

TEST(Serving, CountsWhatThereIs) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 32, .sequences = 2});
  Outcome a, b, c;
  for (Outcome* o : {&a, &b, &c})
    take(m.engine->submit(listen({.prompt = some_ids(70, 200), .max_tokens = 4}, *o)));
  EXPECT_EQ(m.engine->counters().waiting, 3);
  ASSERT_TRUE(*m.engine->step());
  Counters now = m.engine->counters();
  EXPECT_EQ(now.waiting, 1);
  EXPECT_EQ(now.running, 2);
  EXPECT_EQ(now.pages_used, 4);
  EXPECT_EQ(now.pages_cached, 0);
  EXPECT_EQ(now.pages_total, 8);
  run(*m.engine);
  now = m.engine->counters();
  EXPECT_EQ(now.waiting + now.running + now.pages_used, 0);
  EXPECT_EQ(now.pages_cached, 2) << "the same tokens are kept once";
  EXPECT_EQ(now.prompt_tokens, 210);
  EXPECT_EQ(now.cached_tokens, 69) << "of the third";
  EXPECT_EQ(now.new_tokens, 12);
  EXPECT_GT(c.finish->queue_seconds, 0);
}

TEST(Serving, SaysHowFarAPromptIs) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 32});
  std::vector<int64_t> stored;
  Request request{.prompt = some_ids(100, 200), .max_tokens = 3};
  request.on_prefill = [&](int64_t done) { stored.push_back(done); };
  take(m.engine->submit(std::move(request)));
  run(*m.engine);
  EXPECT_EQ(stored, (std::vector<int64_t>{32, 64, 96, 100}));
}

TEST(Serving, APoolSmallerThanAContextIsRefused) {
  EXPECT_THROW(machine(kTiny, {.context = 256, .positions = 255}), Error);
  Machine m = machine(kTiny, {.context = 256, .chunk = 64, .sequences = 4, .positions = 256});
  const Outcome got = ask(*m.engine, {.prompt = some_ids(100, 200), .max_tokens = -1});
  EXPECT_EQ(got.tokens.size(), 156u) << "one request may have all of it";
}

TEST(Serving, RandomStormsEndEveryRequestAndLoseNoPage) {
  Machine m = machine(kTiny, {.context = 192, .chunk = 24, .sequences = 8, .positions = 10 * 64});
  std::mt19937 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int submitted = 0, ended = 0;
  std::vector<SequenceId> ids = {0};
  std::vector<Outcome> got(150);
  for (int i = 0; i < 4000 && submitted < 150; ++i) {
    if (below(4) == 0) {
      Request r = sampled(some_ids(1 + below(120), 200, static_cast<uint32_t>(below(5))), below(50), 3);
      r.priority = static_cast<Priority>(below(3));
      r.tenant = r.salt = std::to_string(below(3));
      if (below(3) == 0) r.session = r.salt + std::to_string(below(3));
      if (below(3) == 0) r.after = ids.back();
      if (below(20) == 0) r.deadline = Clock::now();
      r.keep = below(5) != 0;
      r = listen(std::move(r), got[static_cast<size_t>(submitted)]);
      r.on_finish = [&ended](Finish&) { ++ended; };
      ids.push_back(take(m.engine->submit(std::move(r))));
      ++submitted;
    }
    if (below(15) == 0) m.engine->cancel(ids[static_cast<size_t>(below(static_cast<int>(ids.size())))]);
    if (below(40) == 0) m.engine->end_session("0" + std::to_string(below(3)));
    ASSERT_TRUE(m.engine->step());
    const auto sound = m.engine->check();
    ASSERT_TRUE(sound) << sound.error().message;
  }
  run(*m.engine);
  EXPECT_EQ(ended, submitted);
  EXPECT_EQ(submitted, 150);
  EXPECT_GT(m.engine->counters().preempted, 0);
  expect_idle(*m.engine);
}

}  // namespace
}  // namespace juno::engine
