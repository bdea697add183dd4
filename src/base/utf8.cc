// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstring>

namespace juno {
namespace {

// What may follow a leading byte (Unicode, table 3-7): how many bytes, and the bounds of the first of them.
struct Lead {
  uint8_t more = 0, low = 0x80, high = 0xBF;
};

constexpr Lead lead_of(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  if (byte >= 0xF1 && byte <= 0xF3) return {3};
  return {};
}

}  // namespace

Char first_char(std::string_view text) {
  const uint8_t byte = static_cast<uint8_t>(text[0]);
  if (byte < 0x80) return {byte, 1, Char::State::kValid};
  Lead lead = lead_of(byte);
  if (lead.more == 0) return {kReplacement, 1, Char::State::kInvalid};
  char32_t code = byte & (0x3F >> lead.more);
  for (uint32_t i = 1; i <= lead.more; ++i) {
    if (i >= text.size()) return {kReplacement, i, Char::State::kCut};
    const uint8_t next = static_cast<uint8_t>(text[i]);
    if (next < lead.low || next > lead.high) return {kReplacement, i, Char::State::kInvalid};
    code = code << 6 | (next & 0x3F);
    lead.low = 0x80, lead.high = 0xBF;
  }
  return {code, lead.more + 1u, Char::State::kValid};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    uint64_t eight = 0;
    if (text.size() >= 8) std::memcpy(&eight, text.data(), 8);
    if (text.size() >= 8 && (eight & 0x8080808080808080u) == 0) {
      text.remove_prefix(8);
      continue;
    }
    const Char c = first_char(text);
    if (c.state != Char::State::kValid) return false;
    text.remove_prefix(c.size);
  }
  return true;
}

void append_utf8(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  } else if (code < 0x10000) {
    text += {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
             static_cast<char>(0x80 | (code & 0x3F))};
  } else {
    text += {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3F)),
             static_cast<char>(0x80 | (code >> 6 & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
  }
}

}  // namespace juno
