// SPDX-License-Identifier: Apache-2.0
#include "gguf/text.h"

#include <gtest/gtest.h>

namespace juno::gguf {

TEST(Utf8, TakesShortestFormsOnly) {
  for (const char* good : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
                           "\xf4\x8f\xbf\xbf", "12345678\xc3\xa9"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98",
                          "12345678\xc3", "tiny\xc3\x28"})
    EXPECT_FALSE(is_utf8(bad)) << shown(bad);
}

TEST(Shown, IsAlwaysUtf8AndOneLine) {
  EXPECT_EQ(shown("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(shown("\xf0\x28\x8c"), "\uFFFD(\uFFFD");
  EXPECT_EQ(shown("abcdef", 3), "abc…");
  EXPECT_EQ(shown("abc", 3), "abc");
  std::string all;
  for (int i = 0; i < 256; i++) all += char(i);
  EXPECT_TRUE(is_utf8(shown(all, 1000)));
}

}  // namespace juno::gguf
