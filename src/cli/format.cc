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

}  // namespace

std::string human_bytes(uint64_t bytes) { return scaled(static_cast<double>(bytes), "B"); }

std::string human_count(uint64_t count) {
  std::string text = scaled(static_cast<double>(count), "");
  if (text.back() == ' ') text.pop_back();
  return text;
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else out += c;
  }
  return out;
}

}  // namespace juno::cli
