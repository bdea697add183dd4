// SPDX-License-Identifier: Apache-2.0
#include "gguf/text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace juno::gguf {

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
