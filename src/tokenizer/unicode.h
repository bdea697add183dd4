// SPDX-License-Identifier: Apache-2.0
// UTF-8 one character at a time, and the few character classes that pre-tokenizers ask for.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

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

inline constexpr char32_t kReplacement = 0xFFFD;

struct Char {
  enum class State : uint8_t {
    kValid,
    kInvalid,  // no continuation can make it valid; size covers the longest part that a character begins with
    kCut,      // the text ends inside a character that was valid so far
  };
  char32_t code = kReplacement;
  uint32_t size = 0;  // bytes, 1 … 4
  State state = State::kInvalid;
};

// The first character of a text that is not empty.
Char first_char(std::string_view text);

bool is_utf8(std::string_view text);

void append_utf8(std::string& text, char32_t code);

// The text with U+FFFD in place of what is no UTF-8.
std::string to_utf8(std::string_view bytes);

}  // namespace juno::tokenizer
