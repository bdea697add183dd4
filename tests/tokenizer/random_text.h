// SPDX-License-Identifier: Apache-2.0
// Random texts that follow from a number, the same as in tools/make_tokenizer_goldens.py.
#pragma once
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "tokenizer/unicode.h"

namespace juno::tokenizer {

class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t end) { return (*this)() % end; }

 private:
  uint64_t state_;
};

inline std::string random_text(uint64_t index) {
  struct Range {
    char32_t low, high;
  };
  static constexpr Range kRanges[] = {
      {0x20, 0x7E},     {0x61, 0x7A},       {0x41, 0x5A},       {0x30, 0x39},       {0xA0, 0x24F},
      {0x300, 0x36F},   {0x370, 0x52F},     {0x5D0, 0x5EA},     {0x620, 0x669},     {0x904, 0x963},
      {0x1780, 0x17DD}, {0x2000, 0x205F},   {0x2150, 0x23FF},   {0x3000, 0x30FF},   {0x4E00, 0x9FFF},
      {0xAC00, 0xD7A3}, {0x1F300, 0x1F6D0}, {0x1D400, 0x1D454}, {0x20000, 0x2A6DF}, {0xE0000, 0x10FFFF}};
  static constexpr std::string_view kPieces[] = {" ",      "  ",     "    ",   "\n",
                                                 "\r\n",   "\n\n",   "\t",     "'s",
                                                 "'LL",    "'re",    "the",    " the",
                                                 "...",    "==",     "/\n",    "\u2581",
                                                 "\uFE0F", "\u200D", "\u00A0", std::string_view("\0", 1),
                                                 "\uFFFD", "123",    "aaaa"};
  SplitMix draw(index);
  std::string text;
  for (uint64_t left = draw.below(40); left > 0; --left) {
    if (draw.below(3) == 0) {
      text += kPieces[draw.below(std::size(kPieces))];
    } else {
      const Range range = kRanges[draw.below(std::size(kRanges))];
      append_utf8(text, range.low + static_cast<char32_t>(draw.below(range.high - range.low + 1)));
    }
  }
  return text;
}

inline std::string random_bytes(SplitMix& draw, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(draw());
  return bytes;
}

}  // namespace juno::tokenizer
