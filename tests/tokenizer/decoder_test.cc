// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/decoder.h"

#include "tokenizer/random_text.h"
#include "tokenizer/vocabularies.h"

namespace juno::tokenizer {
namespace {

std::vector<int32_t> byte_tokens(const Tokenizer& tokenizer, const std::string& bytes) {
  std::vector<int32_t> ids;
  for (const char byte : bytes) {
    for (int32_t id = 0; id < tokenizer.size(); ++id) {
      if (tokenizer.piece(id) != std::string_view(&byte, 1)) continue;
      ids.push_back(id);
      break;
    }
  }
  EXPECT_EQ(ids.size(), bytes.size());
  return ids;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool special) {
  Decoder decoder(tokenizer, special);
  std::string text;
  for (const int32_t id : ids) {
    const std::string part = decoder.push(id);
    EXPECT_TRUE(is_utf8(part));
    text += part;
  }
  return text + decoder.flush();
}

TEST(C19, AStreamNeverHoldsHalfACharacter) {
  for (const std::string& name : families()) {
    const Tokenizer& tokenizer = family(name);
    Decoder decoder(tokenizer);
    const std::vector<int32_t> ids = byte_tokens(tokenizer, "x\U0001F999y");
    const std::string expected[] = {"x", "", "", "", "\U0001F999", "y"};
    for (size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(decoder.push(ids[i]), expected[i]) << name << ", byte " << i;
    EXPECT_EQ(decoder.flush(), "") << name;
  }
}

TEST(C19, AStreamJoinedIsTheWholeTextDecoded) {
  for (const std::string& name : families()) {
    const Tokenizer& tokenizer = family(name);
    SplitMix draw(19);
    for (int round = 0; round < 200; ++round) {
      std::vector<int32_t> ids(draw.below(60));
      for (int32_t& id : ids) id = static_cast<int32_t>(draw.below(static_cast<uint64_t>(tokenizer.size())));
      for (const bool special : {false, true}) {
        ASSERT_EQ(streamed(tokenizer, ids, special), to_utf8(tokenizer.decode(ids, special))) << name;
      }
    }
  }
}

TEST(C20, BytesThatAreNoTextBecomeReplacementCharacters) {
  const struct {
    std::string bytes, text;
  } cases[] = {
      {"\xFF", "\uFFFD"},
      {"\x80\x80", "\uFFFD\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},
      {"\xF0\x9F\x98z", "\uFFFDz"},
      {"\xE4\xB8", "\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"a\xE4\xB8\xAD\xE4", "a\u4E2D\uFFFD"},
  };
  for (const std::string& name : families()) {
    for (const auto& c : cases) {
      const std::vector<int32_t> ids = byte_tokens(family(name), c.bytes);
      EXPECT_EQ(streamed(family(name), ids, false), c.text) << name;
      EXPECT_EQ(family(name).decode(ids), c.bytes) << name;
    }
    SplitMix draw(20);
    std::string bytes(50, '\0');
    for (char& byte : bytes) byte = static_cast<char>(0x80 | draw());
    EXPECT_EQ(streamed(family(name), byte_tokens(family(name), bytes), false), to_utf8(bytes)) << name;
  }
}

TEST(Decoder, DropsTheBlankThatEncodingPutInFront) {
  const Tokenizer& tokenizer = family("llama-spm");
  const std::vector<int32_t> ids = tokenizer.encode("Hello world", {.add_special = true});
  EXPECT_EQ(streamed(tokenizer, ids, false), "Hello world");
  EXPECT_EQ(streamed(tokenizer, ids, true), "<s>Hello world");
  Decoder later(tokenizer, false, true);
  EXPECT_EQ(later.push(ids[1]), " Hello");
}

TEST(Decoder, HasNoTextForControlTokensAndForIdsThatAreNone) {
  const Tokenizer& tokenizer = family("qwen2");
  Decoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(*tokenizer.special().eos), "");
  EXPECT_EQ(decoder.push(-1), "");
  EXPECT_EQ(decoder.push(tokenizer.size()), "");
}

}  // namespace
}  // namespace juno::tokenizer
