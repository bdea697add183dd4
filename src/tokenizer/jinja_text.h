// SPDX-License-Identifier: Apache-2.0
// Text that remembers which of its bytes came from outside the template (messages, tools, arguments).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace juno::tokenizer::jinja {

// UTF-8 bytes plus the ranges that are not to be trusted: sorted, disjoint, never touching.
class Text {
 public:
  struct Range {
    size_t begin, end;
  };

  Text() = default;
  explicit Text(std::string_view bytes, bool trusted = true) { append(bytes, trusted); }

  const std::string& bytes() const { return bytes_; }
  const std::vector<Range>& untrusted() const { return untrusted_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool trusted_at(size_t byte) const;

  void append(std::string_view bytes, bool trusted = true);
  void append(const Text& other) { append(other, 0, other.size()); }
  void append(const Text& other, size_t begin, size_t end);
  Text cut(size_t begin, size_t end) const;

 private:
  std::string bytes_;
  std::vector<Range> untrusted_;
};

// Characters are code points; a byte that is no UTF-8 counts as one character of its own.
size_t char_bytes(std::string_view s, size_t at);
size_t char_count(std::string_view s);
// The byte offsets of all characters and, last, the size.
std::vector<size_t> char_offsets(std::string_view s);
uint32_t code_point(std::string_view one_char);

// Character classes and case as Python's str has them (simple mappings; ß becomes SS).
bool is_space(uint32_t code);
bool is_printable(uint32_t code);
bool is_upper(uint32_t code);
bool is_lower(uint32_t code);
bool is_alpha(uint32_t code);
std::string to_upper(std::string_view one_char);
std::string to_lower(std::string_view one_char);

// [begin, end) of what is left when the characters of `chars` (white space where null) are stripped.
enum class Side { kLeft, kRight, kBoth };
Text::Range strip_range(std::string_view s, Side side, const std::string* chars);

}  // namespace juno::tokenizer::jinja
