// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/unicode.h"

#include <gtest/gtest.h>

namespace juno::tokenizer {
namespace {

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
