// SPDX-License-Identifier: Apache-2.0
#include "grammar/chars.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/utf8.h"

namespace juno::grammar {
namespace {

Bytes byte_range(uint32_t first, uint32_t last) {
  Bytes set;
  for (uint32_t b = first; b <= last; ++b) set.set(b);
  return set;
}

std::string encoded(uint32_t c) {
  std::string bytes;
  append_utf8(bytes, c);
  return bytes;
}

// Characters first … last, whose encodings are equally long.
NodeId sequences(Builder& to, uint32_t first, uint32_t last, NodeId next) {
  NodeId all = to.never();
  while (first <= last) {
    // The largest aligned run from `first`: only its last bytes vary, each over a range.
    uint32_t block = 1;
    while (block < 0x40000 && first % (block * 64) == 0 && first + block * 64 - 1 <= last) block *= 64;
    uint32_t until = std::min(last, first | (block * 64 - 1));  // vary the next byte, too, where it fits
    until = first + (until - first + 1) / block * block - 1;
    const std::string low = encoded(first), high = encoded(until);
    NodeId run = next;
    for (size_t i = low.size(); i-- > 0;)
      run = to.bytes(byte_range(static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])), run);
    all = to.either(run, all);
    first = until + 1;
  }
  return all;
}

constexpr std::pair<char, char> kShort[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                            {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};

// What JSON does not let stand for itself.
const Ranges kEscaped = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};

NodeId escape(Builder& to, uint32_t c, NodeId next) {
  for (const auto& [character, letter] : kShort) {
    if (static_cast<uint32_t>(character) == c) return to.literal(std::string{'\\', letter}, next);
  }
  return to.literal(fmt::format("\\u{:04x}", c), next);
}

Ranges common(const Ranges& a, const Ranges& b) {
  Ranges both;
  for (const auto& x : a) {
    for (const auto& y : b) {
      const uint32_t first = std::max(x.first, y.first), last = std::min(x.second, y.second);
      if (first <= last) both.emplace_back(first, last);
    }
  }
  return both;
}

}  // namespace

Ranges tidy(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges joined;
  for (const auto& [first, last] : ranges) {
    if (!joined.empty() && first <= joined.back().second + 1)
      joined.back().second = std::max(joined.back().second, last);
    else joined.emplace_back(first, last);
  }
  return common(joined, {{0, 0xd7ff}, {0xe000, kLastChar}});
}

Ranges all_but(const Ranges& ranges) {
  Ranges rest;
  uint32_t from = 0;
  for (const auto& [first, last] : tidy(ranges)) {
    if (first > from) rest.emplace_back(from, first - 1);
    from = last + 1;
  }
  if (from <= kLastChar) rest.emplace_back(from, kLastChar);
  return tidy(std::move(rest));
}

NodeId utf8(Builder& to, const Ranges& ranges, NodeId next) {
  const Ranges lengths[] = {{{0, 0x7f}}, {{0x80, 0x7ff}}, {{0x800, 0xffff}}, {{0x10000, kLastChar}}};
  const Ranges wanted = tidy(ranges);
  NodeId all = to.never();
  Bytes ascii;
  for (const auto& [first, last] : common(wanted, lengths[0])) ascii |= byte_range(first, last);
  for (int i = 1; i < 4; ++i) {
    for (const auto& [first, last] : common(wanted, lengths[i]))
      all = to.either(sequences(to, first, last, next), all);
  }
  return ascii.any() ? to.either(to.bytes(ascii, next), all) : all;
}

NodeId json_char(Builder& to, const Ranges& ranges, NodeId next) {
  const Ranges wanted = tidy(ranges);
  NodeId all = utf8(to, common(wanted, all_but(kEscaped)), next);
  for (const auto& [first, last] : common(wanted, kEscaped)) {
    for (uint32_t c = first; c <= last; ++c) all = to.either(escape(to, c, next), all);
  }
  return all;
}

NodeId json_text(Builder& to, std::string_view text, NodeId next) {
  for (size_t i = text.size(); i-- > 0;) {
    const auto c = static_cast<uint8_t>(text[i]);
    const bool plain = c >= 0x20 && c != '"' && c != '\\';
    next = plain ? to.bytes(Bytes().set(c), next) : escape(to, c, next);
  }
  return next;
}

}  // namespace juno::grammar
