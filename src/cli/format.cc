// SPDX-License-Identifier: Apache-2.0
#include "cli/format.h"

#include <fmt/format.h>

namespace juno::cli {
namespace {

std::string scaled(double value, const char* unit) {
  static constexpr const char* kPrefix[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t i = 0;
  for (; value >= 999.5 && i + 1 < std::size(kPrefix); ++i) value /= 1000;
  return i == 0 ? fmt::format("{:.0f} {}", value, unit) : fmt::format("{:.3g} {}{}", value, kPrefix[i], unit);
}

std::string escaped(std::string_view text, bool keep_lines) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if ((text[i] == '\n' || text[i] == '\t') && keep_lines) out += text[i];
    else if (text[i] == '\n') out += "\\n";
    else if (text[i] == '\t') out += "\\t";
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else if (byte == 0xC2 && next >= 0x80 && next < 0xA0)
      out += fmt::format("\\x{:02x}", next), ++i;  // C1 in UTF-8
    else out += text[i];
  }
  return out;
}

}  // namespace

std::string human_bytes(uint64_t bytes) { return scaled(static_cast<double>(bytes), "B"); }

std::string human_count(uint64_t count) {
  std::string text = scaled(static_cast<double>(count), "");
  if (text.back() == ' ') text.pop_back();
  return text;
}

std::string printable(std::string_view text) { return escaped(text, false); }
std::string harmless(std::string_view text) { return escaped(text, true); }

}  // namespace juno::cli
