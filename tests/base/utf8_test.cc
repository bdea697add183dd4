// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace juno {
namespace {

TEST(Utf8, TakesShortestFormsOnly) {
  for (const char* good : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
                           "\xf4\x8f\xbf\xbf", "12345678\xc3\xa9"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98",
                          "12345678\xc3", "tiny\xc3\x28"})
    EXPECT_FALSE(is_utf8(bad)) << testing::PrintToString(bad);
}

TEST(Utf8, EveryCodePointIsReadAsItWasWritten) {
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

}  // namespace
}  // namespace juno
