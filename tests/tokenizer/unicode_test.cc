// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/unicode.h"

#include <gtest/gtest.h>

namespace juno::tokenizer {
namespace {

TEST(Unicode, EveryCodePointIsReadAsItWasWritten) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    std::string text;
    append_utf8(text, code);
    const Char c = first_char(text);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    ASSERT_EQ(c.state == Char::State::kValid, !surrogate) << std::hex << static_cast<uint32_t>(code);
    if (surrogate) continue;
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(c.size, text.size());
    text.pop_back();
    if (text.empty()) continue;
    ASSERT_EQ(first_char(text).state, Char::State::kCut);
  }
}

TEST(Unicode, ClassesAreThoseOfTheStandard) {
  EXPECT_EQ(class_of('A'), Class::kUpper);
  EXPECT_EQ(class_of(0x01C5), Class::kUpper);  // a title-case letter
  EXPECT_EQ(class_of(0x00DF), Class::kLower);
  EXPECT_EQ(class_of(0x4E2D), Class::kLetter);
  EXPECT_EQ(class_of(0x02B0), Class::kLetter);
  EXPECT_EQ(class_of(0x0301), Class::kMark);
  EXPECT_EQ(class_of(0x00BD), Class::kNumber);
  EXPECT_EQ(class_of(0x3000), Class::kSpace);
  EXPECT_EQ(class_of(0x0085), Class::kSpace);
  EXPECT_EQ(class_of(0x200B), Class::kOther);
  EXPECT_EQ(class_of('_'), Class::kPunctuation);
  EXPECT_EQ(class_of('+'), Class::kOther);
  EXPECT_EQ(class_of(0x10FFFF), Class::kOther);
  EXPECT_EQ(class_of(0xFFFFFFFF), Class::kOther);
}

}  // namespace
}  // namespace juno::tokenizer
