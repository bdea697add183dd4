// SPDX-License-Identifier: Apache-2.0
// Speculation must not be seen, but in time: tokens and logits are those without it, bit for bit.
#include "engine/speculation.h"

#include "backend/backends.h"
#include "engine/engine_fixture.h"
#include "grammar/gbnf.h"

namespace juno::engine {
namespace {

constexpr int kContext = 256;

Machine fast(const std::string& path, const EngineOptions& options) {
  return machine(path, options, take(open_backend("cpu", {.threads = 1})));
}

std::vector<int32_t> looked_up(const std::vector<int32_t>& tokens, size_t most) {
  std::vector<int32_t> guesses;
  look_up(tokens, most, guesses);
  return guesses;
}

using Ids = std::vector<int32_t>;

TEST(LookUp, FindsWhatFollowedTheSameTokens) {
  EXPECT_EQ(looked_up({1, 2, 3, 4, 5, 2, 3}, 2), (Ids{4, 5}));
  EXPECT_EQ(looked_up({1, 2, 3, 4, 5, 2, 3}, 9), (Ids{4, 5, 2, 3}));
  EXPECT_EQ(looked_up({7, 1, 2, 9, 1, 2, 8, 7, 1, 2}, 1), (Ids{9})) << "the longest agreement wins";
  EXPECT_EQ(looked_up({1, 2, 9, 1, 2, 8, 1, 2}, 1), (Ids{8})) << "then the newest";
  EXPECT_EQ(looked_up({5, 5, 5, 5}, 3), (Ids{5}));
  EXPECT_TRUE(looked_up({1, 2, 3, 2, 4, 2}, 3).empty()) << "one token is no agreement";
  for (const Ids& few : {Ids{}, Ids{1}, Ids{1, 1}, Ids{1, 2}}) EXPECT_TRUE(looked_up(few, 3).empty());
  EXPECT_EQ(looked_up({1, 1, 1}, 3), (Ids{1}));
}

std::shared_ptr<grammar::Constraint> digits() {
  return std::make_shared<grammar::Constraint>(
      grammar::compile_gbnf("root ::= ([0-9]{3} \",\"){6}"),
      std::make_shared<const grammar::VocabularyBytes>(
          320, [](int32_t id) { return id < 256 ? std::string(1, static_cast<char>(id)) : std::string(); }));
}

// Requests of all kinds. Low temperatures and penalties that reward repetition make text that repeats itself.
std::vector<Request> requests() {
  std::vector<Request> all;
  for (int i = 0; i < 8; ++i) {
    Ids prompt = some_ids(20 + i, 200, static_cast<uint32_t>(i));
    prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 12);
    Request r{.prompt = prompt, .max_tokens = 60, .every_logits = true};
    r.sampling.temperature = i % 2 == 0 ? 0 : 0.3f;
    r.sampling.seed = static_cast<uint64_t>(i);
    if (i == 2) r.sampling.presence_penalty = 1;
    if (i == 3) r.sampling.frequency_penalty = -2;
    if (i == 4) r.grammar = Guide(digits());
    if (i == 5) r.sampling.logprobs = true;
    if (i == 6) r.stop_ids = {17, 40, 90};
    if (i == 6) r.min_tokens = 10;
    if (i == 7) r.max_tokens = -1;
    all.push_back(std::move(r));
  }
  return all;
}

struct Said {
  Ids tokens;
  std::vector<float> logprobs;
  uint64_t logits;
  int rows;
  FinishReason reason;
  bool operator==(const Said&) const = default;
};

std::vector<Said> said(Engine& engine, std::vector<Request> requests, int64_t* drafted = nullptr,
                       int64_t* accepted = nullptr) {
  std::vector<Outcome> outcomes(requests.size());
  for (size_t i = 0; i < requests.size(); ++i)
    take(engine.submit(listen(std::move(requests[i]), outcomes[i])));
  run(engine);
  std::vector<Said> all;
  for (const Outcome& o : outcomes) {
    all.push_back({o.tokens, o.logprobs, o.logits.value(), o.rows, o.finish->reason});
    if (drafted) *drafted += o.finish->drafted_tokens;
    if (accepted) *accepted += o.finish->accepted_tokens;
  }
  EXPECT_TRUE(engine.check_idle());
  return all;
}

TEST(Speculation, ByPromptLookupGivesTheBitsWithoutIt) {
  Machine plain = fast(kTiny, {.context = kContext, .sequences = 8});
  const auto expected = said(*plain.engine, requests());
  for (int guesses : {1, 8}) {
    for (int sequences : {1, 8}) {
      Machine m = fast(kTiny, {.context = kContext, .sequences = sequences, .prompt_lookup = guesses});
      int64_t drafted = 0, accepted = 0;
      EXPECT_EQ(said(*m.engine, requests(), &drafted, &accepted), expected) << guesses << " " << sequences;
      EXPECT_GT(accepted, 0) << "something was guessed right";
      EXPECT_GT(drafted, accepted) << "and something wrong";
      EXPECT_EQ(m.engine->counters().drafted, drafted);
      EXPECT_EQ(m.engine->counters().accepted, accepted);
    }
  }
}

TEST(Speculation, ByADraftModelGivesTheBitsWithoutIt) {
  Machine plain = fast(kTiny, {.context = kContext, .sequences = 8});
  const auto expected = said(*plain.engine, requests());
  // The model itself guesses nearly always right, another of the same vocabulary nearly never.
  for (const std::string& name : {kTiny, fixture("mistral")}) {
    for (int guesses : {1, 4}) {
      Machine draft = fast(name, {.context = kContext, .sequences = 3, .vocab = 320});
      Machine m = fast(
          kTiny, {.context = kContext, .sequences = 3, .draft = draft.engine.get(), .draft_tokens = guesses});
      int64_t drafted = 0, accepted = 0;
      EXPECT_EQ(said(*m.engine, requests(), &drafted, &accepted), expected) << name << " " << guesses;
      EXPECT_EQ(drafted == accepted, name == kTiny) << "the same model guesses right";
      EXPECT_GT(drafted, 100);
      EXPECT_TRUE(draft.engine->check_idle());
    }
  }
}

TEST(Speculation, LeavesNoTraceOfWrongGuessesInTheCache) {
  Machine plain = fast(kTiny, {.context = kContext});
  Machine draft = fast(fixture("mistral"), {.context = kContext, .vocab = 320});
  Machine m = fast(kTiny, {.context = kContext, .draft = draft.engine.get(), .draft_tokens = 6});
  for (Engine* engine : {plain.engine.get(), m.engine.get()}) (void)said(*engine, requests());
  for (Request& r : requests()) {
    // Goes on with what the cache kept of a reply.
    const auto reply = said(*plain.engine, {r})[0].tokens;
    Request next{.prompt = r.prompt, .max_tokens = 5, .every_logits = true};
    next.prompt.insert(next.prompt.end(), reply.begin(), reply.end());
    if (next.prompt.size() + 5 > kContext) continue;
    Request cold = next;
    cold.reuse = 0;
    EXPECT_EQ(said(*m.engine, {next}), said(*plain.engine, {cold}));
  }
}

TEST(Speculation, CallbacksMayCancelAmongGuesses) {
  Machine draft = fast(kTiny, {.context = kContext});
  Machine m = fast(kTiny, {.context = kContext, .draft = draft.engine.get(), .draft_tokens = 6});
  Outcome got;
  SequenceId id = 0;
  Request request = listen({.prompt = some_ids(5, 200), .max_tokens = 50}, got);
  request.on_token = [&, n = 0](const Token&) mutable {
    if (++n == 4) m.engine->cancel(id);
    return true;
  };
  id = *m.engine->submit(std::move(request));
  run(*m.engine);
  EXPECT_EQ(got.finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(got.finish->new_tokens, 4);
  Outcome stopped;
  request = listen({.prompt = some_ids(5, 200), .max_tokens = 50}, stopped);
  request.on_token = [n = 0](const Token&) mutable { return ++n < 4; };
  ASSERT_TRUE(m.engine->submit(std::move(request)));
  run(*m.engine);
  EXPECT_EQ(stopped.finish->reason, FinishReason::kStop);
  EXPECT_EQ(stopped.finish->new_tokens, 4);
  EXPECT_TRUE(m.engine->check_idle());
}

}  // namespace
}  // namespace juno::engine
