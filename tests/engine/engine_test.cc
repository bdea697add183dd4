// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>

#include "engine/engine_fixture.h"

namespace juno::engine {
namespace {

constexpr int32_t kVocab = 320;

TEST(Engine, GeneratesAsManyTokensAsAskedFor) {
  Machine m = machine(kTiny, {.context = 128});
  Outcome got;
  ASSERT_TRUE(m.engine->submit(listen({.prompt = some_ids(5, 200), .max_tokens = 7}, got)));
  run(*m.engine);
  EXPECT_EQ(got.tokens.size(), 7u);
  EXPECT_EQ(got.finish->reason, FinishReason::kLength);
  EXPECT_EQ(got.finish->prompt_tokens, 5);
  EXPECT_EQ(got.finish->new_tokens, 7);
  EXPECT_TRUE(m.engine->check_idle());
}

TEST(Engine, EndsWithLengthAtExactlyTheLastPositionOfTheContext) {
  for (int context : {63, 64, 65}) {
    Machine m = machine(kTiny, {.context = context});
    Outcome got;
    int64_t last = 0;
    Request request = listen({.prompt = some_ids(40, 200), .max_tokens = -1}, got);
    request.on_token = [&](const Token& t) {
      last = t.position;
      return true;
    };
    ASSERT_TRUE(m.engine->submit(std::move(request)));
    run(*m.engine);
    EXPECT_EQ(got.finish->reason, FinishReason::kLength);
    EXPECT_EQ(last, context - 1);
    EXPECT_EQ(got.finish->new_tokens, context - 40);
  }
}

TEST(Engine, APromptAsLongAsTheContextLeavesNoToken) {
  Machine m = machine(kTiny, {.context = 64});
  Outcome got;
  ASSERT_TRUE(m.engine->submit(listen({.prompt = some_ids(64, 200), .max_tokens = -1}, got)));
  run(*m.engine);
  EXPECT_EQ(got.finish->reason, FinishReason::kLength);
  EXPECT_TRUE(got.tokens.empty());
}

TEST(Engine, RefusesAPromptLongerThanTheContextWithBothNumbers) {
  Machine m = machine(kTiny, {.context = 64});
  const auto refused = m.engine->submit({.prompt = some_ids(65, 200)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBadData);
  EXPECT_NE(refused.error().message.find("65"), std::string::npos);
  EXPECT_NE(refused.error().message.find("64"), std::string::npos);
}

TEST(Engine, RefusesWhatItCannotRun) {
  Machine m = machine(kTiny, {.context = 64});
  EXPECT_FALSE(m.engine->submit({}));
  EXPECT_FALSE(m.engine->submit({.prompt = {-1}}));
  EXPECT_FALSE(m.engine->submit({.prompt = {1 << 30}}));
  EXPECT_FALSE(m.engine->submit({.prompt = {1}, .sampling = {.temperature = -1}}));
  EXPECT_FALSE(m.engine->submit({.prompt = {1, 2}, .logits_at = {2}}));
  EXPECT_FALSE(m.engine->submit({.prompt = {1, 2}, .logits_at = {1, 0}}));
  EXPECT_TRUE(m.engine->check_idle());
}

TEST(Engine, StopsAtAStopToken) {
  Machine m = machine(kTiny, {.context = 128});
  Outcome free, stopped;
  ASSERT_TRUE(m.engine->submit(listen({.prompt = some_ids(5, 200), .max_tokens = 10}, free)));
  run(*m.engine);
  const int32_t stop = free.tokens[4];
  const auto first = std::find(free.tokens.begin(), free.tokens.end(), stop) - free.tokens.begin();
  ASSERT_TRUE(
      m.engine->submit(listen({.prompt = some_ids(5, 200), .max_tokens = 10, .stop_ids = {stop}}, stopped)));
  run(*m.engine);
  EXPECT_EQ(stopped.finish->reason, FinishReason::kStop);
  EXPECT_EQ(stopped.tokens.size(), static_cast<size_t>(first) + 1);
}

TEST(Engine, StopsWhenTheReceiverHasEnough) {
  Machine m = machine(kTiny, {.context = 128});
  Outcome got;
  Request request = listen({.prompt = some_ids(5, 200), .max_tokens = -1}, got);
  request.on_token = [n = 0](const Token&) mutable { return ++n < 3; };
  ASSERT_TRUE(m.engine->submit(std::move(request)));
  run(*m.engine);
  EXPECT_EQ(got.finish->reason, FinishReason::kStop);
  EXPECT_EQ(got.finish->new_tokens, 3);
}

TEST(Engine, CancelsInEveryPhase) {
  Machine m = machine(kTiny, {.context = 128, .chunk = 8});
  for (int steps : {0, 1, 4}) {
    Outcome got, waiting;
    const auto id = m.engine->submit(listen({.prompt = some_ids(20, 200), .max_tokens = 50}, got));
    const auto second = m.engine->submit(listen({.prompt = some_ids(20, 200), .max_tokens = 2}, waiting));
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(*m.engine->step());
    m.engine->cancel(*id);
    ASSERT_TRUE(got.finish);
    EXPECT_EQ(got.finish->reason, FinishReason::kCancelled);
    m.engine->cancel(*id);
    run(*m.engine);
    EXPECT_EQ(waiting.finish->reason, FinishReason::kLength) << "who waited comes next";
    m.engine->cancel(*second);
    EXPECT_TRUE(m.engine->check_idle());
  }
}

TEST(Engine, ACallbackMayCancelItsOwnSequence) {
  Machine m = machine(kTiny, {.context = 128});
  Outcome got;
  SequenceId id = 0;
  Request request = listen({.prompt = some_ids(5, 200), .max_tokens = 50}, got);
  request.on_token = [&](const Token&) {
    m.engine->cancel(id);
    return true;
  };
  id = *m.engine->submit(std::move(request));
  run(*m.engine);
  EXPECT_EQ(got.finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(got.finish->new_tokens, 1);
  EXPECT_TRUE(m.engine->check_idle());
}

TEST(Engine, SequencesWaitTheirTurnWhenPagesAreShort) {
  Machine m = machine(kTiny, {.context = 128, .sequences = 2});
  std::vector<Outcome> got(5);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(m.engine->submit(
        listen({.prompt = some_ids(10 + i, 200, static_cast<uint32_t>(i)), .max_tokens = 20}, got[i])));
  }
  run(*m.engine);
  for (const Outcome& o : got) EXPECT_EQ(o.tokens.size(), 20u);
  EXPECT_TRUE(m.engine->check_idle());
}

TEST(Engine, NeverSamplesPastTheTokenizersVocabulary) {
  Machine m = machine(kTiny, {.context = 256, .vocab = 3});
  Outcome got;
  ASSERT_TRUE(m.engine->submit(
      listen({.prompt = some_ids(5, 200), .max_tokens = 100, .sampling = {.temperature = 100}}, got)));
  run(*m.engine);
  EXPECT_EQ(got.tokens.size(), 100u);
  for (int32_t id : got.tokens) EXPECT_LT(id, 3);
}

TEST(Engine, GivesLogitsOnlyWhereAsked) {
  Machine m = machine(kTiny, {.context = 256, .chunk = 16});
  std::vector<int64_t> seen;
  Request request{.prompt = some_ids(50, 200), .max_tokens = 2, .logits_at = {0, 15, 16, 49}};
  request.on_logits = [&](int64_t position, std::span<const float> row) {
    seen.push_back(position);
    EXPECT_EQ(static_cast<int64_t>(row.size()), m.model->config.vocab);
  };
  ASSERT_TRUE(m.engine->set_chunk(16, 16));
  ASSERT_TRUE(m.engine->submit(std::move(request)));
  run(*m.engine);
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 15, 16, 49}));
}

}  // namespace
}  // namespace juno::engine
