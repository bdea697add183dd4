// SPDX-License-Identifier: Apache-2.0
#include "server/http.h"

#include <algorithm>
#include <cctype>

namespace juno::server {

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  for (const auto& [key, value] : headers)
    if (std::ranges::equal(key, name, same)) return value;
  return {};
}

}  // namespace juno::server
