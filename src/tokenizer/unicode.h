// SPDX-License-Identifier: Apache-2.0
// The few character classes that pre-tokenizers ask for.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace juno::tokenizer {

enum class Class : uint8_t {
  kOther,        // symbols, controls, unassigned, and bytes that are no text
  kUpper,        // Lu Lt
  kLower,        // Ll
  kLetter,       // Lm Lo
  kMark,         // M
  kNumber,       // N
  kSpace,        // White_Space
  kPunctuation,  // P
};

constexpr bool is_letter(Class c) { return c == Class::kUpper || c == Class::kLower || c == Class::kLetter; }

Class class_of(char32_t code);

// The text with U+FFFD in place of what is no UTF-8.
std::string to_utf8(std::string_view bytes);

}  // namespace juno::tokenizer
