// SPDX-License-Identifier: Apache-2.0
// Ids against those of the reference implementations.
#include <nlohmann/json.hpp>

#include "tokenizer/decoder.h"
#include "tokenizer/vocabularies.h"

namespace juno::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

std::vector<std::string> split_by(const std::string& text, const std::string& border) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (size_t next; (next = text.find(border, at)) != text.npos; at = next + border.size()) {
    parts.push_back(text.substr(at, next - at));
  }
  parts.push_back(text.substr(at));
  return parts;
}

TEST(C11, IdsEqualTheReferenceForFiveFamilies) {
  for (const std::string& name : families()) {
    const Tokenizer& tokenizer = family(name);
    const std::string path = data_file("tokenizers/ggml-vocab-" + name + ".gguf");
    const auto texts = split_by(read_file(path + ".inp"), "\n__ggml_vocab_test__\n");
    const auto rows = split_by(read_file(path + ".out"), "\n");
    ASSERT_GE(texts.size(), 40u);
    ASSERT_GE(rows.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      std::istringstream row(rows[i]);
      const Ids expected{std::istream_iterator<int32_t>(row), {}};
      EXPECT_EQ(tokenizer.encode(texts[i]), expected) << name << ", text " << i << ": " << texts[i];
    }
  }
}

void expect_goldens(const std::string& model, const std::string& goldens) {
  const Tokenizer tokenizer = load_file(model);
  const auto golden = nlohmann::json::parse(read_file(data_file("goldens/" + goldens)));
  const auto& strings = golden.at("strings");
  EXPECT_EQ(strings.size(), 60u);
  for (const auto& row : strings) {
    const std::string text = row.at("text");
    const auto& want = row.contains("ids_sentencepiece") ? row.at("ids_sentencepiece") : row.at("ids");
    const Ids expected = want.get<Ids>();
    const Ids ids = tokenizer.encode(text, {.parse_special = row.at("parse_special")});
    EXPECT_EQ(ids, expected) << goldens << ": " << row.at("name");
    EXPECT_EQ(tokenizer.decode(expected, true), row.at("decoded").get<std::string>())
        << goldens << ": " << row.at("name");
    Decoder decoder(tokenizer, true);
    std::string streamed;
    for (const int32_t id : expected) streamed += decoder.push(id);
    EXPECT_EQ(streamed + decoder.flush(), row.at("decoded").get<std::string>())
        << goldens << ": " << row.at("name");
  }
}

TEST(TokenizerGoldens, DemoModel) {
  expect_goldens(std::string(JUNO_SOURCE_DIR) + "/models/juno-demo-23m.Q8_0.gguf",
                 "juno-demo-23m-q8_0.tokenizer.json");
}

TEST(TokenizerGoldens, SmolLM2) {
  const std::string model = outside_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (model.empty())
    GTEST_SKIP()
        << "SmolLM2-135M-Instruct.Q4_1.gguf is neither in JUNO_TEST_MODELS nor in ../shared/data/models";
  expect_goldens(model, "smollm2-135m-instruct-q4_1.tokenizer.json");
}

TEST(TokenizerGoldens, Gemma3) {
  const std::string model = outside_model("gemma-3-270m-q4_k_m.gguf");
  if (model.empty())
    GTEST_SKIP() << "gemma-3-270m-q4_k_m.gguf is neither in JUNO_TEST_MODELS nor in ../shared/data/models";
  expect_goldens(model, "gemma3-270m-q4_k_m.tokenizer.json");
}

}  // namespace
}  // namespace juno::tokenizer
