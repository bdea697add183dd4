// SPDX-License-Identifier: Apache-2.0
// Whether a browser may have been sent here by somebody else's page.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "server/http.h"

namespace juno::server {

// "localhost", "x.localhost", 127.0.0.0/8 and ::1, with or without a port, as in a Host header.
bool is_loopback_name(std::string_view host);

struct OriginRules {
  bool loopback = true;              // listens on loopback only: Host must be a name of it
  uint16_t port = 0;                 // that is listened on
  std::vector<std::string> allowed;  // origins beside our own, as "https://app.example"
};

enum class Origin : uint8_t { kOwn, kAllowed, kForeign };

// Own: no Origin at all, or the one that Host names. A foreign Host makes all foreign.
Origin judge_origin(const HttpRequest& request, const OriginRules& rules);

}  // namespace juno::server
