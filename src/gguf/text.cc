// SPDX-License-Identifier: Apache-2.0
#include "gguf/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace juno::gguf {
namespace {

// Bytes of the character that `text` begins with; 0 when it begins with none.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : uint8_t(0); };
  const auto tail = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const uint8_t b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xc2 && b <= 0xdf) return tail(1) ? 2 : 0;
  if (b >= 0xe0 && b <= 0xef)  // no overlong forms after e0, no surrogates after ed
    return tail(1, b == 0xe0 ? 0xa0 : 0x80, b == 0xed ? 0x9f : 0xbf) && tail(2) ? 3 : 0;
  if (b >= 0xf0 && b <= 0xf4)
    return tail(1, b == 0xf0 ? 0x90 : 0x80, b == 0xf4 ? 0x8f : 0xbf) && tail(2) && tail(3) ? 4 : 0;
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    uint64_t eight = 0;
    if (text.size() >= 8) std::memcpy(&eight, text.data(), 8);
    const bool ascii = text.size() >= 8 && (eight & 0x8080808080808080u) == 0;
    const size_t n = ascii ? 8 : character(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

std::string shown(std::string_view text, size_t limit) {
  std::string out;
  const size_t whole = text.size();
  while (!text.empty() && whole - text.size() < limit) {
    const size_t n = character(text);
    const uint8_t b = uint8_t(text[0]);
    if (n == 0) {
      out += "\uFFFD";
    } else if (b < 0x20 || b == 0x7f) {
      out += fmt::format("\\x{:02x}", b);
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(std::max<size_t>(n, 1));
  }
  return text.empty() ? out : out + "…";
}

}  // namespace juno::gguf
