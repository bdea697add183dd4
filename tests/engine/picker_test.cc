// SPDX-License-Identifier: Apache-2.0
#include "engine/picker.h"

#include "backend/backends.h"
#include "engine/engine_fixture.h"
#include "grammar/gbnf.h"

namespace juno::engine {
namespace {

constexpr int kSequences = 24, kTokens = 6;
constexpr int32_t kDemoVocab = 8192;  // of the demo model

// Every kind of pick there is, of which the greedy one costs least and the whole vocabulary most.
SamplingParams kind(int i) {
  const auto seed = static_cast<uint64_t>(i);
  switch (i % 6) {
    case 0:
      return {};
    case 1:
      return {.temperature = 1, .seed = seed};
    case 2:
      return {.temperature = 1, .seed = seed, .logprobs = true, .top_logprobs = i % 20};
    case 3:
      return {.temperature = 0.8f, .top_k = 40, .top_p = 0.9f, .min_p = 0.01f, .seed = seed};
    case 4:
      return {.temperature = 2, .typical_p = 0.9f, .repeat_penalty = 1.3f, .seed = seed, .logprobs = true};
    default:
      return {.temperature = 0, .frequency_penalty = 0.5f, .logit_bias = {{i, 9.0f}}, .logprobs = true};
  }
}

// One grammar for all who are held to one, as requests of a server share it.
std::shared_ptr<grammar::Constraint> letters() {
  return std::make_shared<grammar::Constraint>(
      grammar::compile_gbnf(R"(root ::= [a-p]{3,40})"),
      std::make_shared<const grammar::VocabularyBytes>(
          kDemoVocab, [](int32_t id) { return std::string(1, static_cast<char>('a' + id % 26)); }));
}

struct Heard {
  Outcome outcome;
  std::vector<std::pair<int32_t, float>> top;
};

// All of them at once, in every step.
std::vector<Heard> run_all(Engine& engine) {
  std::vector<Heard> heard(kSequences);
  const auto constraint = letters();
  for (int i = 0; i < kSequences; ++i) {
    Heard& h = heard[static_cast<size_t>(i)];
    Request request = listen({.prompt = some_ids(4, kDemoVocab, static_cast<uint32_t>(i)),
                              .max_tokens = kTokens,
                              .sampling = kind(i),
                              .every_logits = i % 5 == 0},
                             h.outcome);
    if (i % 4 == 1) request.grammar = Guide(constraint);
    request.on_token = [&h, listened = std::move(request.on_token)](const Token& t) {
      for (const Scored& s : t.top) h.top.emplace_back(s.id, s.logprob);
      return listened(t);
    };
    request.keep = false;
    take(engine.submit(std::move(request)));
  }
  run(engine);
  return heard;
}

Machine with_threads(int threads) {
  const EngineOptions options{.context = 64, .chunk = 128, .sequences = kSequences};
  BackendOptions backend{.threads = threads, .pool = std::make_shared<ThreadPool>(threads)};
  return machine(kDemo, options, take(open_backend("cpu", backend)));
}

TEST(Picker, ThreadsShareTheRowsAndChangeNoBit) {
  Machine alone = with_threads(1), shared = with_threads(3);
  const std::vector<Heard> want = run_all(*alone.engine);
  int64_t beside = 0;
  for (int round = 0; round < 50 && beside == 0; ++round) {
    const std::vector<Heard> got = run_all(*shared.engine);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].outcome.tokens, want[i].outcome.tokens) << i;
      EXPECT_EQ(got[i].outcome.tokens.size(), size_t{kTokens}) << i;
      EXPECT_EQ(got[i].outcome.logprobs, want[i].outcome.logprobs) << i;
      EXPECT_EQ(got[i].outcome.logits.value(), want[i].outcome.logits.value()) << i;
      EXPECT_EQ(got[i].top, want[i].top) << i;
    }
    const auto picked = shared.engine->picker().picked();
    ASSERT_EQ(picked.size(), 3u);
    EXPECT_EQ(picked[0] + picked[1] + picked[2], int64_t{kSequences} * kTokens * (round + 1));
    beside = picked[1] + picked[2];
  }
  EXPECT_GT(beside, 0) << "other threads picked too";
}

TEST(Picker, APickForASequenceThatWasCancelledMeanwhileIsDropped) {
  Machine m = with_threads(2);
  Outcome first, second;
  SequenceId last = 0;
  Request request = listen({.prompt = {1}, .max_tokens = 3, .sampling = kind(1)}, first);
  request.on_token = [&](const Token&) {
    m.engine->cancel(last);
    return true;
  };
  take(m.engine->submit(std::move(request)));
  last = take(m.engine->submit(listen({.prompt = {2}, .max_tokens = 3, .sampling = kind(1)}, second)));
  run(*m.engine);
  EXPECT_EQ(first.finish->new_tokens, 3);
  EXPECT_EQ(second.finish->reason, FinishReason::kCancelled);
  EXPECT_TRUE(second.tokens.empty());
}

}  // namespace
}  // namespace juno::engine
