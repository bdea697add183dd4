// SPDX-License-Identifier: Apache-2.0
// Replies held to a grammar, with a model of random weights: what comes out is the grammar's doing alone.
#include "engine/guide.h"

#include "backend/backends.h"
#include "engine/engine_fixture.h"
#include "grammar/gbnf.h"

namespace juno::engine {
namespace {

constexpr int32_t kEnd = 300;  // no token of the vocabulary below

using grammar::Matcher;

// Token i is byte i, and 256 is "true".
std::string bytes_of(int32_t id) {
  return id < 256 ? std::string(1, static_cast<char>(id)) : id == 256 ? "true" : "";
}

std::shared_ptr<grammar::Constraint> constraint(std::string_view gbnf) {
  return std::make_shared<grammar::Constraint>(
      grammar::compile_gbnf(gbnf), std::make_shared<const grammar::VocabularyBytes>(320, bytes_of));
}

std::string text_of(const std::vector<int32_t>& ids) {
  std::string text;
  for (int32_t id : ids) text += id == kEnd ? "" : bytes_of(id);
  return text;
}

Request held(std::string_view gbnf, Outcome& outcome, uint64_t seed = 1, float temperature = 5) {
  return listen({.prompt = some_ids(5, 200),
                 .max_tokens = 60,
                 .sampling = {.temperature = temperature, .seed = seed},
                 .stop_ids = {kEnd},
                 .grammar = Guide(constraint(gbnf))},
                outcome);
}

TEST(Grammar, EveryReplyThatStopsFits) {
  Machine m = machine(kTiny, {.context = 128, .sequences = 2}, take(open_backend("cpu", {.threads = 1})));
  const std::string grammars[] = {
      R"(root ::= "yes" | "no")",
      R"(root ::= [a-c]{2,5})",
      R"(root ::= "[" (number ("," number)*)? "]"
         number ::= [0-9]{1,3})",
      R"(root ::= ("true" | "truth") "!"?)",
      R"(root ::= [^x]{1,20})",
  };
  int stops = 0;
  for (const std::string& text : grammars) {
    const grammar::Automaton automaton = grammar::compile_gbnf(text);
    for (uint64_t seed = 0; seed < 10; ++seed) {
      for (float temperature : {0.0f, 5.0f}) {
        Outcome got;
        ASSERT_TRUE(m.engine->submit(held(text, got, seed, temperature)));
        run(*m.engine);
        const std::string reply = text_of(got.tokens);
        ASSERT_NE(got.finish->reason, FinishReason::kError) << got.finish->error->message;
        if (got.finish->reason != FinishReason::kStop) {
          EXPECT_FALSE(Matcher(automaton).read(Matcher(automaton).start(), reply).dead()) << reply;
          continue;
        }
        ++stops;
        EXPECT_TRUE(Matcher(automaton).matches(reply)) << text << ": " << reply;
      }
    }
  }
  EXPECT_GT(stops, 60);
}

TEST(Grammar, EndsByItselfWhereNothingMayFollow) {
  Machine m = machine(kTiny, {.context = 128});
  Outcome got;
  ASSERT_TRUE(m.engine->submit(held(R"(root ::= "abc")", got)));
  run(*m.engine);
  EXPECT_EQ(got.finish->reason, FinishReason::kStop);
  EXPECT_EQ(text_of(got.tokens), "abc");
  EXPECT_EQ(got.tokens.size(), 3u) << "no end token is waited for";
}

TEST(Grammar, EndTokensComeExactlyWhereTheTextMayEnd) {
  Machine m = machine(kTiny, {.context = 128});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Outcome got;
    Request request = held(R"(root ::= "ab"+)", got, seed);
    request.sampling.logit_bias = {{kEnd, 100.0f}};
    ASSERT_TRUE(m.engine->submit(std::move(request)));
    run(*m.engine);
    EXPECT_EQ(text_of(got.tokens), "ab");
    EXPECT_EQ(got.tokens.back(), kEnd);
    EXPECT_EQ(got.finish->reason, FinishReason::kStop);
  }
}

TEST(Grammar, FailsRatherThanRunFree) {
  Machine m = machine(kTiny, {.context = 128});
  auto words =
      std::make_shared<const grammar::VocabularyBytes>(320, [](int32_t id) { return id == 'a' ? "a" : ""; });
  for (const char* text : {R"(root ::= "b")", R"(root ::= "ab")"}) {
    Outcome got;
    Request request = held(R"(root ::= "x")", got);
    request.grammar = Guide(std::make_shared<grammar::Constraint>(grammar::compile_gbnf(text), words));
    ASSERT_TRUE(m.engine->submit(std::move(request)));
    run(*m.engine);
    EXPECT_EQ(got.finish->reason, FinishReason::kError);
    EXPECT_NE(got.finish->error->message.find("grammar"), std::string::npos);
    EXPECT_EQ(text_of(got.tokens), text[10] == 'b' ? "" : "a");
  }
  Outcome banned;
  Request request = held(R"(root ::= "a" | "b")", banned);
  request.sampling.logit_bias = {{'a', -100.0f}, {'b', -100.0f}};
  ASSERT_TRUE(m.engine->submit(std::move(request)));
  run(*m.engine);
  EXPECT_EQ(banned.finish->reason, FinishReason::kError);
  EXPECT_NE(banned.finish->error->message.find("logit_bias"), std::string::npos);
  EXPECT_TRUE(banned.tokens.empty());
  EXPECT_TRUE(m.engine->check_idle());
}

TEST(Grammar, AFaultOfOneSequenceLeavesItsCompanyAlone) {
  Machine m = machine(kTiny, {.context = 128, .sequences = 2});
  auto nothing = std::make_shared<const grammar::VocabularyBytes>(320, [](int32_t) { return ""; });
  Outcome bad, alone, beside;
  ASSERT_TRUE(m.engine->submit(held("root ::= [a-z]+", alone)));
  run(*m.engine);
  Request request = held("root ::= [a-z]+", bad);
  request.grammar =
      Guide(std::make_shared<grammar::Constraint>(grammar::compile_gbnf("root ::= \"a\""), nothing));
  ASSERT_TRUE(m.engine->submit(std::move(request)));
  ASSERT_TRUE(m.engine->submit(held("root ::= [a-z]+", beside)));
  run(*m.engine);
  EXPECT_EQ(bad.finish->reason, FinishReason::kError);
  EXPECT_EQ(beside.tokens, alone.tokens);
}

TEST(EndTokens, AreBannedUntilMinTokens) {
  Machine m = machine(kTiny, {.context = 128});
  for (int64_t least : {0, 1, 7}) {
    for (float temperature : {0.0f, 1.0f}) {
      Outcome got;
      Request request = listen({.prompt = some_ids(5, 200),
                                .max_tokens = 20,
                                .sampling = {.temperature = temperature, .logit_bias = {{kEnd, 99.0f}}},
                                .stop_ids = {kEnd},
                                .min_tokens = least},
                               got);
      ASSERT_TRUE(m.engine->submit(std::move(request)));
      run(*m.engine);
      EXPECT_EQ(got.finish->reason, FinishReason::kStop);
      EXPECT_EQ(got.tokens.size(), static_cast<size_t>(least) + 1);
    }
  }
}

TEST(EndTokens, AreBannedThroughoutWhenIgnored) {
  Machine m = machine(kTiny, {.context = 128});
  Outcome free, ignoring;
  ASSERT_TRUE(m.engine->submit(listen({.prompt = some_ids(5, 200), .max_tokens = 20}, free)));
  run(*m.engine);
  Request request = listen({.prompt = some_ids(5, 200),
                            .max_tokens = 20,
                            .stop_ids = {free.tokens[0], free.tokens[5]},
                            .ignore_end = true},
                           ignoring);
  ASSERT_TRUE(m.engine->submit(std::move(request)));
  run(*m.engine);
  EXPECT_EQ(ignoring.finish->reason, FinishReason::kLength);
  EXPECT_EQ(ignoring.tokens.size(), 20u);
  for (int32_t id : ignoring.tokens) EXPECT_TRUE(id != free.tokens[0] && id != free.tokens[5]);
}

TEST(Tokens, CarryTheirMostProbableRivals) {
  Machine m = machine(kTiny, {.context = 128});
  Request request{.prompt = some_ids(5, 200),
                  .max_tokens = 5,
                  .sampling = {.temperature = 1, .logprobs = true, .top_logprobs = 3},
                  .every_logits = true};
  std::vector<float> logits;
  int seen = 0;
  request.on_logits = [&](int64_t, std::span<const float> row) { logits.assign(row.begin(), row.end()); };
  request.on_token = [&](const Token& t) {
    EXPECT_EQ(t.top.size(), 3u);
    EXPECT_EQ(t.top[0].id, std::max_element(logits.begin(), logits.end()) - logits.begin());
    EXPECT_EQ(*t.logprob, Sampler(320).score(logits, t.id, 0).logprob);
    return ++seen > 0;
  };
  ASSERT_TRUE(m.engine->submit(std::move(request)));
  run(*m.engine);
  EXPECT_EQ(seen, 5);
}

TEST(Guides, ControlTokensNeverStandForTheirTextUnlessListed) {
  const auto file = take(gguf::Reader::open(kDemo, Log{}));
  const auto tokenizer = take(tokenizer::Tokenizer::load(file.metadata(), Log{}));
  const int32_t end = tokenizer.end_tokens()[0];
  ASSERT_TRUE(tokenizer.is_control(end));
  const auto automaton = std::make_shared<const grammar::Automaton>(
      grammar::compile_gbnf(fmt::format("root ::= \"{}\"", tokenizer.piece(end))));
  Guides guides(tokenizer);
  for (bool keep : {false, true}) {
    Guide guide = guides.begin(automaton, keep ? std::vector<int32_t>{end} : std::vector<int32_t>{});
    EXPECT_EQ(guide.mask().allows(end), keep);
    EXPECT_TRUE(guide.mask().any) << "the text can be spelt in other tokens";
    int others = 0;
    for (int32_t id = 0; id < tokenizer.size(); ++id)
      others += tokenizer.is_control(id) && id != end && guide.mask().allows(id);
    EXPECT_EQ(others, 0);
  }
}

TEST(Guides, RememberGrammarsAndForgetTheOldest) {
  const auto file = take(gguf::Reader::open(kDemo, Log{}));
  const auto tokenizer = take(tokenizer::Tokenizer::load(file.metadata(), Log{}));
  Guides guides(tokenizer);
  std::vector<Guide> kept;
  for (int i = 0; i < 40; ++i) {
    const auto one =
        std::make_shared<const grammar::Automaton>(grammar::compile_gbnf(fmt::format("root ::= \"{}\"", i)));
    kept.push_back(guides.begin(one));
    kept.push_back(guides.begin(one));
  }
  for (Guide& guide : kept) EXPECT_TRUE(guide.mask().any) << "a guide outlives its place in the list";
}

}  // namespace
}  // namespace juno::engine
