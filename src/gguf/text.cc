// SPDX-License-Identifier: Apache-2.0
#include "gguf/text.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace juno::gguf {

std::string shown(std::string_view text, size_t limit) {
  std::string out;
  const size_t whole = text.size();
  while (!text.empty() && whole - text.size() < limit) {
    const Char c = first_char(text);
    const bool valid = c.state == Char::State::kValid;
    const size_t n = valid ? c.size : 1;
    if (!valid) {
      out += "\uFFFD";
    } else if (c.code < 0x20 || c.code == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c.code));
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n);
  }
  return text.empty() ? out : out + "…";
}

}  // namespace juno::gguf
