// SPDX-License-Identifier: Apache-2.0
// Hidden states, from which embeddings are made.
#include "backend/backends.h"
#include "engine/engine_fixture.h"

namespace juno::engine {
namespace {

struct States {
  std::vector<int64_t> positions;
  Fnv1a hash;
  std::vector<float> last;
};

Request hidden(std::vector<int32_t> ids, States& to, Outcome& outcome) {
  Request request = listen({.prompt = std::move(ids)}, outcome);
  request.on_hidden = [&to](int64_t position, std::span<const float> state) {
    to.positions.push_back(position);
    to.hash.add(state.data(), state.size_bytes());
    to.last.assign(state.begin(), state.end());
  };
  return request;
}

uint64_t hidden_hash(Engine& engine, const std::vector<int32_t>& ids) {
  States states;
  Outcome outcome;
  take(engine.submit(hidden(ids, states, outcome)));
  run(engine);
  EXPECT_EQ(states.positions, all_positions(ids));
  EXPECT_EQ(outcome.finish->reason, FinishReason::kLength);
  EXPECT_TRUE(outcome.tokens.empty());
  return states.hash.value();
}

TEST(C31, HiddenStatesAreTheSameWhateverTheInnerBatch) {
  for (const char* backend : {"reference", "cpu"}) {
    for (const char* model : {"llama-untied", "gemma2", "granite", "qwen3moe"}) {
      if (backend == std::string("reference") && model != std::string("llama-untied")) continue;  // slow
      std::optional<uint64_t> first;
      for (int chunk : {1, 32, 100}) {
        Machine m = machine(fixture(model), {.context = 100, .chunk = chunk},
                            take(open_backend(backend, {.threads = 1})));
        std::vector<uint64_t> hashes;
        for (int count : {1, 32, 33, 100}) hashes.push_back(hidden_hash(*m.engine, some_ids(count, 200)));
        Fnv1a all;
        all.add(hashes.data(), hashes.size() * sizeof(uint64_t));
        if (!first) first = all.value();
        EXPECT_EQ(*first, all.value()) << model << " on " << backend << " in chunks of " << chunk;
        EXPECT_TRUE(m.engine->check_idle());
      }
    }
  }
}

TEST(Hidden, StatesAreWhatTheHeadReads) {
  for (const char* name : {"llama-untied", "gemma2", "granite"}) {
    Machine m = machine(fixture(name), {.context = 64});
    States states;
    Outcome outcome;
    std::vector<float> logits;
    ASSERT_TRUE(m.engine->submit(hidden(some_ids(5, 200), states, outcome)));
    run(*m.engine);
    Request request{.prompt = some_ids(5, 200), .logits_at = {4}};
    request.on_logits = [&](int64_t, std::span<const float> row) { logits.assign(row.begin(), row.end()); };
    ASSERT_TRUE(m.engine->submit(std::move(request)));
    run(*m.engine);
    m.ops->begin({});
    const Tensor made = m.model->architecture->logits(
        *m.ops, {states.last.data(), DType::kF32, {.rows = 1, .cols = m.model->config.dim}});
    EXPECT_EQ(std::vector<float>(made.f32(), made.f32() + made.cols()), logits) << name;
  }
}

TEST(Hidden, AndTokensShareStepsWithoutAnyChange) {
  Machine m = machine(fixture("llama-untied"), {.context = 128, .chunk = 16, .sequences = 3});
  const auto text = some_ids(60, 200);
  const uint64_t alone = hidden_hash(*m.engine, text);
  Outcome free, beside, first_end, second_end;
  ASSERT_TRUE(m.engine->submit(listen({.prompt = some_ids(40, 200, 2), .max_tokens = 20}, free)));
  run(*m.engine);
  States first, second;
  ASSERT_TRUE(m.engine->submit(hidden(text, first, first_end)));
  ASSERT_TRUE(m.engine->submit(listen({.prompt = some_ids(40, 200, 2), .max_tokens = 20}, beside)));
  ASSERT_TRUE(m.engine->submit(hidden(text, second, second_end)));
  run(*m.engine);
  EXPECT_EQ(first.hash.value(), alone);
  EXPECT_EQ(second.hash.value(), alone);
  EXPECT_EQ(beside.tokens, free.tokens);
  EXPECT_TRUE(m.engine->check_idle());
}

TEST(Hidden, AreRefusedBesideTokensAndLogits) {
  Machine m = machine(fixture("llama-untied"), {.context = 64});
  States states;
  Outcome outcome;
  Request request = hidden(some_ids(5, 200), states, outcome);
  request.max_tokens = 1;
  EXPECT_FALSE(m.engine->submit(request));
  request.max_tokens = 0;
  request.logits_at = {3};
  EXPECT_FALSE(m.engine->submit(request));
}

}  // namespace
}  // namespace juno::engine
