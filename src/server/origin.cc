// SPDX-License-Identifier: Apache-2.0
#include "server/origin.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

namespace juno::server {
namespace {

// "[::1]:80" -> "::1", "80"; "a:80" -> "a", "80".
std::pair<std::string_view, std::string_view> split_port(std::string_view host) {
  const size_t bracket = host.find(']');
  const size_t colon = host.find(':', bracket == host.npos ? 0 : bracket);
  const std::string_view port = colon == host.npos ? "" : host.substr(colon + 1);
  std::string_view name = host.substr(0, colon);
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  return {name, port};
}

bool ends_with_word(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && same_word(text.substr(text.size() - end.size()), end);
}

}  // namespace

bool is_loopback_name(std::string_view host) {
  std::string name(split_port(host).first);
  if (name.ends_with('.')) name.pop_back();
  if (same_word(name, "localhost") || ends_with_word(name, ".localhost")) return true;
  in_addr four{};
  if (inet_pton(AF_INET, name.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, name.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

Origin judge_origin(const HttpRequest& request, const OriginRules& rules) {
  const std::string_view host = request.header("host").value_or("");
  if (rules.loopback && !is_loopback_name(host)) return Origin::kForeign;
  const auto origin = request.header("origin");
  if (!origin) return Origin::kOwn;
  if (std::ranges::find(rules.allowed, *origin) != rules.allowed.end()) return Origin::kAllowed;
  const size_t scheme = origin->find("://");
  if (scheme == origin->npos) return Origin::kForeign;
  const std::string_view from = origin->substr(scheme + 3);
  const bool own = same_word(from, host) || (rules.loopback && is_loopback_name(from) &&
                                             split_port(from).second == fmt::to_string(rules.port));
  return own ? Origin::kOwn : Origin::kForeign;
}

}  // namespace juno::server
