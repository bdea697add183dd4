// SPDX-License-Identifier: Apache-2.0
// UTF-8 one character at a time: shortest forms only, no surrogates, nothing above U+10FFFF.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace juno {

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

// A surrogate, which is no character, gets the three bytes that its number would have.
void append_utf8(std::string& text, char32_t code);

}  // namespace juno
