// SPDX-License-Identifier: Apache-2.0
#include "server/routes.h"

#include <optional>

#include "server/anthropic/routes.h"
#include "server/inference.h"
#include "server/openai/routes.h"
#include "server/openapi.h"
#include "server/own_routes.h"
#include "server/page.h"

namespace juno::server {
namespace {

enum How : uint8_t { kKey = 0, kOpen = 1, kQuick = 2 };  // open: without a key; quick: see Route

struct Line {
  const char* method;
  const char* path;
  Handle handle;
  int how = kKey;
};

// THE LIST, one line a route.
constexpr Line kRoutes[] = {
    {"GET", "/", page, kQuick},
    {"GET", "/page/{file}", page, kQuick},
    {"GET", "/health", health, kOpen | kQuick},
    {"GET", "/metrics", metrics, kQuick},
    {"GET", "/props", props, kQuick},
    {"GET", "/openapi.json", openapi, kQuick},
    {"GET", "/v1/sessions", list_sessions},
    {"DELETE", "/v1/sessions/{id}", end_session},
    {"POST", "/v1/chat/completions", chat_completions},
    {"POST", "/v1/completions", completions},
    {"POST", "/v1/embeddings", embeddings},
    {"GET", "/v1/models", list_models},
    {"GET", "/v1/models/{id*}", one_model},
    {"POST", "/v1/responses", responses},
    {"POST", "/v1/messages", messages},
    {"POST", "/v1/messages/count_tokens", count_tokens},
    {"POST", "/v1/inference", inference},
    {"POST", "/v1/inference/stream", inference_stream},
    {"POST", "/v1/tokenize", tokenize},
    {"POST", "/v1/detokenize", detokenize},
    {"POST", "/v1/apply-template", apply_template},
    {"POST", "/tokenize", tokenize},
    {"POST", "/detokenize", detokenize},
    {"POST", "/apply-template", apply_template},
};

// What {…} stood for, or nothing when the path is another one.
std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view path) {
  std::vector<std::string> parameters;
  while (!pattern.empty()) {
    if (pattern.front() != '{') {
      if (path.empty() || path.front() != pattern.front()) return {};
      pattern.remove_prefix(1);
      path.remove_prefix(1);
      continue;
    }
    const std::string_view name = pattern.substr(0, pattern.find('}') + 1);
    const std::string_view value = path.substr(0, name.ends_with("*}") ? path.npos : path.find('/'));
    if (value.empty()) return {};
    parameters.emplace_back(value);
    pattern.remove_prefix(name.size());
    path.remove_prefix(value.size());
  }
  if (!path.empty()) return {};
  return parameters;
}

}  // namespace

std::vector<Route> routes(App& app) {
  std::vector<Route> all;
  for (const Line& line : kRoutes)
    all.push_back({.method = line.method,
                   .path = line.path,
                   .handler = [&app, handle = line.handle](const auto& exchange) { handle(app, exchange); },
                   .open = (line.how & kOpen) != 0,
                   .quick = (line.how & kQuick) != 0});
  return all;
}

Router::Found Router::find(std::string_view method, std::string_view path) const {
  Found found;
  for (const Route& route : routes_) {
    auto parameters = match(route.path, path);
    if (!parameters) continue;
    if (route.method == method) return {.route = &route, .parameters = std::move(*parameters)};
    found.allow += (found.allow.empty() ? "" : ", ") + (route.method == "GET" ? "GET, HEAD" : route.method);
  }
  return found;
}

}  // namespace juno::server
