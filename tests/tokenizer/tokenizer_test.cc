// SPDX-License-Identifier: Apache-2.0
// Special tokens, prompts in segments, and vocabularies that cannot be right.
#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <functional>

#include "tokenizer/random_text.h"
#include "tokenizer/vocabularies.h"

namespace juno::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

std::vector<int32_t> control_tokens(const Tokenizer& tokenizer) {
  Ids ids;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    if (tokenizer.is_control(id)) ids.push_back(id);
  }
  return ids;
}

bool holds_control(const Tokenizer& tokenizer, const Ids& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return tokenizer.is_control(id); });
}

TEST(C58, TextOfUsersNeverBecomesAControlToken) {
  for (const std::string& name : families()) {
    const Tokenizer& tokenizer = family(name);
    const Ids controls = control_tokens(tokenizer);
    ASSERT_FALSE(controls.empty());
    for (const int32_t id : controls) {
      const std::string text(tokenizer.piece(id));
      const std::string half = text.substr(0, text.size() / 2), rest = text.substr(text.size() / 2);
      const std::string spaced = " " + text;
      const std::vector<std::vector<Segment>> prompts{
          {{text, false}},
          {{half, false}, {rest, false}},
          {{half, true}, {rest, false}},
          {{half, false}, {rest, true}},
          {{"Say ", true}, {spaced, false}, {text, false}, {" please", true}},
      };
      for (const auto& prompt : prompts) {
        ASSERT_FALSE(holds_control(tokenizer, tokenizer.encode_segments(prompt))) << name << ": " << text;
      }
      ASSERT_FALSE(holds_control(tokenizer, tokenizer.encode(text))) << name << ": " << text;
      const std::vector<Segment> trusted{{half, true}, {rest, true}};
      ASSERT_EQ(tokenizer.encode_segments(trusted), Ids{id}) << name << ": " << text;
    }
  }
}

TEST(C58, SegmentsWithoutControlTextGetTheIdsOfTheWholeText) {
  for (const std::string& name : families()) {
    const Tokenizer& tokenizer = family(name);
    const std::string control(tokenizer.piece(*tokenizer.special().eos));
    for (uint64_t i = 0; i < 300; ++i) {
      const std::string content = random_text(i), more = random_text(i + 1000);
      const std::string before = control + "user\n", after = "\n" + control;
      const std::vector<Segment> prompt{{before, true}, {content, false}, {more, false}, {after, true}};
      ASSERT_EQ(tokenizer.encode_segments(prompt),
                tokenizer.encode(before + content + more + after, {.parse_special = true}))
          << name << ", text " << i;
    }
  }
}

TEST(C14, TheBeginTokenComesOnce) {
  const Tokenizer& tokenizer = family("llama-bpe");
  const int32_t bos = *tokenizer.special().bos;
  EXPECT_TRUE(tokenizer.adds_bos());
  const Ids with = tokenizer.encode("hello", {.add_special = true});
  EXPECT_EQ(with[0], bos);
  EXPECT_EQ(std::count(with.begin(), with.end(), bos), 1);
  EXPECT_EQ(tokenizer.encode("<|begin_of_text|>hello", {.parse_special = true, .add_special = true}), with);
  EXPECT_EQ(tokenizer.encode("", {.add_special = true}), Ids{bos});
  EXPECT_FALSE(family("qwen2").adds_bos());
  EXPECT_EQ(family("qwen2").encode("hello", {.add_special = true}), family("qwen2").encode("hello"));
}

TEST(Tokenizer, KnowsTheTokensThatEndAReply) {
  const auto ends = [](const std::string& name) {
    std::vector<std::string> texts;
    for (const int32_t id : family(name).end_tokens()) texts.emplace_back(family(name).piece(id));
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(ends("gpt-2"), (Texts{"<|endoftext|>"}));
  EXPECT_EQ(ends("llama-bpe"), (Texts{"<|end_of_text|>", "<|eot_id|>"}));
  EXPECT_EQ(ends("qwen2"), (Texts{"<|endoftext|>", "<|im_end|>"}));
  EXPECT_EQ(ends("llama-spm"), (Texts{"</s>"}));
  EXPECT_EQ(ends("phi-3"), (Texts{"<|endoftext|>", "<|end|>"}));
  EXPECT_TRUE(family("qwen2").is_end(151645));
  EXPECT_FALSE(family("qwen2").is_end(0));
}

TEST(Tokenizer, StripsBlanksAfterTheControlTokensOfPhi3) {
  const Tokenizer& phi = family("phi-3");
  const auto encode = [&](const char* text) { return phi.encode(text, {.parse_special = true}); };
  EXPECT_EQ(encode("<|user|>\n Hi<|end|>\n"), encode("<|user|>Hi<|end|>"));
  EXPECT_NE(encode("<s> Hi"), encode("<s>Hi"));
}

TEST(Tokenizer, MatchesTheLongestUserDefinedTokenAlways) {
  MadeUp made = small_bpe();
  for (const char* text : {"ab", "abab", "bc"}) {
    made.tokens.push_back(text);
    made.source.types->push_back(4);
  }
  const Tokenizer tokenizer = take(Tokenizer::load(made.viewed(), {}));
  const int32_t ab = 265, abab = 266, bc = 267;
  EXPECT_EQ(tokenizer.encode("ababab"), (Ids{abab, ab}));
  EXPECT_EQ(tokenizer.encode("abc", {.parse_special = true}), (Ids{ab, 'c'}));
  EXPECT_EQ(tokenizer.encode("xbc"), (Ids{'x', bc}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("xababcab")), "xababcab");
}

TEST(Tokenizer, MergesInTheOrderOfTheList) {
  const Tokenizer tokenizer = take(Tokenizer::load(small_bpe().viewed(), {}));
  // " a" is rank 0, "ba" 1, "ban" 2, "an" 3, "ana" 4.
  EXPECT_EQ(tokenizer.encode(" ana"), (Ids{256, 'n', 'a'}));
  EXPECT_EQ(tokenizer.encode("banana"), (Ids{258, 260}));
}

struct Fault {
  const char* name;
  std::function<void(MadeUp&)> damage;
  const char* says;
};

TEST(Tokenizer, RefusesVocabulariesThatCannotBeRight) {
  const std::vector<Fault> faults{
      {"model", [](MadeUp& m) { m.source.model = "warp"; }, "tokenizer.ggml.model"},
      {"bert", [](MadeUp& m) { m.source.model = "bert"; }, "\"bert\""},
      {"t5", [](MadeUp& m) { m.source.model = "t5"; }, "\"t5\""},
      {"pre", [](MadeUp& m) { m.source.pre = "warp"; }, "tokenizer.ggml.pre: unknown pre-tokenizer \"warp\""},
      {"no merges", [](MadeUp& m) { m.source.merges.reset(); }, "tokenizer.ggml.merges"},
      {"no tokens", [](MadeUp& m) { m.tokens.clear(); }, "tokenizer.ggml.tokens"},
      {"not UTF-8", [](MadeUp& m) { m.tokens[257] = "\xF0\x28\x8C"; }, "tokenizer.ggml.tokens"},
      {"control not UTF-8", [](MadeUp& m) { m.tokens[261] = "\xF0\x28"; }, "tokenizer.ggml.tokens"},
      {"a byte missing", [](MadeUp& m) { m.tokens[10] = "<|new|>"; }, "tokenizer.ggml.tokens"},
      {"one part", [](MadeUp& m) { m.merges[3] = "ab"; }, "tokenizer.ggml.merges"},
      {"three parts", [](MadeUp& m) { m.merges[3] = "a b c"; }, "tokenizer.ggml.merges"},
      {"no part", [](MadeUp& m) { m.merges[3] = ""; }, "tokenizer.ggml.merges"},
      {"half a part", [](MadeUp& m) { m.merges[3] = "a "; }, "tokenizer.ggml.merges"},
      {"merge not UTF-8", [](MadeUp& m) { m.merges[3] = "a \xFF"; }, "tokenizer.ggml.merges"},
      {"bos", [](MadeUp& m) { m.source.bos = 265; }, "tokenizer.ggml.bos_token_id"},
      {"eos", [](MadeUp& m) { m.source.eos = 0xFFFFFFFE; }, "tokenizer.ggml.eos_token_id"},
      {"type", [](MadeUp& m) { (*m.source.types)[7] = 7; }, "tokenizer.ggml.token_type"},
      {"scores", [](MadeUp& m) { m.source.scores.emplace(10, 0.0f); }, "tokenizer.ggml.scores"},
      {"no scores", [](MadeUp& m) { m.source.model = "llama"; }, "tokenizer.ggml.scores"},
  };
  for (const Fault& fault : faults) {
    MadeUp made = small_bpe();
    fault.damage(made);
    if (fault.name == std::string("no scores")) made.source.unk = 0;
    const auto loaded = Tokenizer::load(made.viewed(), {});
    ASSERT_FALSE(loaded) << fault.name;
    EXPECT_EQ(loaded.error().code, Code::kBadData) << fault.name;
    EXPECT_NE(loaded.error().message.find(fault.says), std::string::npos) << loaded.error().message;
  }
  MadeUp made = small_bpe();
  made.viewed().types->pop_back();
  const auto loaded = Tokenizer::load(made.source, {});
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("tokenizer.ggml.token_type"), std::string::npos);
}

TEST(Tokenizer, WarnsOfWhatItCanLiveWith) {
  const std::vector<Fault> faults{
      {"missing pre", [](MadeUp& m) { m.source.pre.reset(); }, "tokenizer.ggml.pre"},
      {"empty", [](MadeUp& m) { m.tokens[260] = ""; }, "tokenizer.ggml.tokens"},
      {"twice", [](MadeUp& m) { m.tokens[260] = "a"; }, "tokenizer.ggml.tokens"},
      {"control twice", [](MadeUp& m) { m.tokens[261] = "<|eos|>"; }, "tokenizer.ggml.tokens"},
      {"control like text", [](MadeUp& m) { m.tokens[261] = "a"; }, "tokenizer.ggml.tokens"},
      {"merge of nothing", [](MadeUp& m) { m.merges[3] = "q z"; }, "tokenizer.ggml.merges"},
      {"no eos", [](MadeUp& m) { m.source.eos = 0xFFFFFFFF; }, "tokenizer.ggml.eos_token_id"},
  };
  for (const Fault& fault : faults) {
    MadeUp made = small_bpe();
    fault.damage(made);
    Said said;
    const auto loaded = Tokenizer::load(made.viewed(), said.log());
    ASSERT_TRUE(loaded) << fault.name << ": " << loaded.error().message;
    EXPECT_NE(said.warnings.find(fault.says), std::string::npos) << fault.name << ": " << said.warnings;
    EXPECT_EQ(loaded->decode(loaded->encode("a banana")), "a banana") << fault.name;
  }
}

TEST(Tokenizer, AVeryLongTokenIsNoFault) {
  MadeUp made = small_bpe();
  made.tokens[261] = std::string(65536, 'x');
  made.tokens[260] = std::string(65536, 'y');
  made.merges.pop_back();
  Said said;
  const Tokenizer tokenizer = take(Tokenizer::load(made.viewed(), said.log()));
  EXPECT_EQ(said.warnings, "");
  const std::string text(70000, 'x');
  EXPECT_EQ(tokenizer.encode(text, {.parse_special = true}), Ids(text.size(), 'x'));
}

TEST(Tokenizer, IsComparedWithTheEmbedding) {
  const Tokenizer tokenizer = take(Tokenizer::load(small_bpe().viewed(), {}));
  Said said;
  EXPECT_TRUE(tokenizer.fit_embedding(265, said.log()));
  EXPECT_EQ(said.warnings, "");
  EXPECT_TRUE(tokenizer.fit_embedding(266, said.log()));
  EXPECT_NE(said.warnings.find("token_embd.weight"), std::string::npos);
  const auto fits = tokenizer.fit_embedding(264, said.log());
  ASSERT_FALSE(fits);
  EXPECT_NE(fits.error().message.find("token_embd.weight"), std::string::npos);
}

TEST(SentencePiece, UnknownTextWithoutByteTokensIsOneUnknownToken) {
  MadeUp made;
  made.tokens = {"<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581ab"};
  made.source.model = "llama";
  made.source.types = std::vector<int32_t>{2, 3, 3, 1, 1, 1, 1, 1};
  made.source.scores = std::vector<float>{0, 0, 0, -5, -6, -7, -1, -2};
  const Tokenizer tokenizer = take(Tokenizer::load(made.viewed(), {}));
  EXPECT_EQ(tokenizer.encode("ab", {.add_special = true}), (Ids{1, 7}));
  EXPECT_EQ(tokenizer.encode("abxyzb"), (Ids{7, 0, 5}));
  EXPECT_EQ(tokenizer.decode(Ids{1, 7, 3, 4}), "ab a");
  made.source.add_space_prefix = false;
  made.source.remove_extra_whitespaces = true;
  const Tokenizer squeezing = take(Tokenizer::load(made.viewed(), {}));
  EXPECT_EQ(squeezing.encode("a   b  "), (Ids{4, 3, 5}));
}

TEST(SentencePiece, AnUnusedTokenIsTakenApartAgain) {
  MadeUp made;
  made.tokens = {"<unk>", "<s>", "</s>", "a", "b", "c", "ab", "abc"};
  made.source.model = "llama";
  made.source.add_space_prefix = false;
  made.source.types = std::vector<int32_t>{2, 3, 3, 1, 1, 1, 5, 5};
  made.source.scores = std::vector<float>{0, 0, 0, -5, -6, -7, -1, -2};
  const Tokenizer tokenizer = take(Tokenizer::load(made.viewed(), {}));
  EXPECT_EQ(tokenizer.encode("abcab"), (Ids{3, 4, 5, 3, 4}));
}

}  // namespace
}  // namespace juno::tokenizer
