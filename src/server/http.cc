// SPDX-License-Identifier: Apache-2.0
#include "server/http.h"

#include <algorithm>
#include <cctype>

namespace juno::server {

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (same_word(key, name)) return value;
  return {};
}

}  // namespace juno::server
