// SPDX-License-Identifier: Apache-2.0
// The routes of a server, and which one a request is for.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "server/app.h"

namespace juno::server {

// THE LIST stands in routes.cc.
std::vector<Route> routes(App& app);

class Router {
 public:
  explicit Router(std::vector<Route> routes) : routes_(std::move(routes)) {}

  struct Found {
    const Route* route = nullptr;
    std::vector<std::string> parameters;
    std::string allow;  // without a route: the methods that this path has, "" when there is no such path
  };
  Found find(std::string_view method, std::string_view path) const;

 private:
  const std::vector<Route> routes_;
};

}  // namespace juno::server
