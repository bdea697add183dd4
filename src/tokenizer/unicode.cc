// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/unicode.h"

#include <iterator>

namespace juno::tokenizer {
namespace {
#include "tokenizer/unicode_classes.inc"

constexpr size_t kPageSize = 128;

}  // namespace

Class class_of(char32_t code) {
  const size_t page = code / kPageSize;
  if (page >= std::size(kPageOf)) return Class::kOther;
  return static_cast<Class>(kPages[kPageOf[page] * kPageSize + code % kPageSize]);
}

std::string to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Char c = first_char(bytes);
    if (c.state == Char::State::kValid) {
      text += bytes.substr(0, c.size);
    } else {
      append_utf8(text, kReplacement);
    }
    bytes.remove_prefix(c.size);
  }
  return text;
}

}  // namespace juno::tokenizer
