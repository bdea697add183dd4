// SPDX-License-Identifier: Apache-2.0
#include "api/prompt.h"

#include "api/golden_check.h"
#include "gguf/reader.h"
#include "tokenizer/chat_template.h"

namespace juno::api {
namespace {

using tokenizer::Tokenizer;

struct Vocabulary {
  gguf::Reader file;
  Tokenizer tokenizer;
  explicit Vocabulary(const std::string& name)
      : file(
            take(gguf::Reader::open(kSource + "/tests/data/tokenizers/ggml-vocab-" + name + ".gguf", Log{}))),
        tokenizer(take(Tokenizer::load(file.metadata(), Log{}))) {}

  // How often BOS comes in a rendered conversation, and whether it comes first.
  std::pair<int64_t, bool> bos_in(const std::string& source) const {
    const std::string path = testing::TempDir() + "juno_prompt.jinja";
    std::ofstream(path, std::ios::binary) << source;
    const auto ids = Prompt(file, tokenizer, path, Log{}).render(std::vector<Message>{{"user", "hi"}});
    const int32_t bos = *tokenizer.special().bos;
    return {std::count(ids.begin(), ids.end(), bos), ids.front() == bos};
  }
};

TEST(C14, AModelThatWantsABeginTokenGetsExactlyOne) {
  for (const char* name : {"llama-spm", "llama-bpe"}) {
    const Vocabulary v(name);
    ASSERT_TRUE(v.tokenizer.adds_bos()) << name;
    const std::pair<int64_t, bool> once{1, true};
    EXPECT_EQ(v.bos_in("{{ messages[0].content }}"), once) << name << ": the tokenizer adds it";
    EXPECT_EQ(v.bos_in("{{ bos_token }}{{ messages[0].content }}"), once)
        << name << ": the template brought it";
  }
}

TEST(C14, AModelThatWantsNoBeginTokenGetsNone) {
  const Vocabulary v("gpt-2");
  ASSERT_FALSE(v.tokenizer.adds_bos());
  const auto ids = Prompt(v.file, v.tokenizer, "chatml", Log{}).render(std::vector<Message>{{"user", "hi"}});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), v.tokenizer.special().bos.value_or(-1)), 0);
}

TEST(C14, RawTextGetsItOnce) {
  const Vocabulary v("llama-bpe");
  const int32_t bos = *v.tokenizer.special().bos;
  EXPECT_EQ(begun({5}, v.tokenizer), (std::vector<int32_t>{bos, 5}));
  EXPECT_EQ(begun({bos, 5}, v.tokenizer), (std::vector<int32_t>{bos, 5}));
  EXPECT_EQ(begun({}, v.tokenizer), (std::vector<int32_t>{bos}));
}

TEST(Prompt, BuiltInTemplatesAreKnownByName) {
  const Vocabulary v("llama-bpe");
  for (const tokenizer::BuiltinTemplate& t : tokenizer::builtin_templates()) {
    const Prompt prompt(v.file, v.tokenizer, std::string(t.name), Log{});
    EXPECT_GT(prompt.render(std::vector<Message>{{"user", "hi"}}).size(), 1u) << t.name;
  }
}

TEST(Prompt, ABrokenTemplateOfTheModelWarnsAndRefusesOnlyTheChat) {
  // The same file with its template's first bytes made nonsense, of the same length.
  std::string file = read_file(kDemo);
  const size_t at = file.find("{%");
  ASSERT_NE(at, std::string::npos);
  file.replace(at, 2, "{{");
  std::vector<uint64_t> aligned((file.size() + 7) / 8);
  std::copy(file.begin(), file.end(), reinterpret_cast<char*>(aligned.data()));
  std::string warned;
  const Log log{[&](Level level, const std::string& text) {
    if (level == Level::kWarning) warned += text;
  }};
  const auto session =
      take(Session::open({.model_path = "broken.gguf",
                          .model_bytes = {reinterpret_cast<const uint8_t*>(aligned.data()), file.size()},
                          .context = 64,
                          .log = log}));
  EXPECT_NE(warned.find("tokenizer.chat_template"), std::string::npos) << warned;
  EXPECT_TRUE(session->complete("The", {.max_tokens = 1}, {}));
  const auto reply = session->chat(std::vector<Message>{{"user", "hi"}}, {}, {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kBadData);
  EXPECT_NE(reply.error().message.find("tokenizer.chat_template"), std::string::npos);
}

}  // namespace
}  // namespace juno::api
