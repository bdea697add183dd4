// SPDX-License-Identifier: Apache-2.0
// GET /openapi.json: the routes in OpenAPI 3.1, from the tables that requests are held against.
#pragma once
#include <vector>

#include "server/app.h"
#include "server/fields.h"

namespace juno::server {

// What is said of a route, beside what routes.cc says.
struct Described {
  const char* method;
  const char* path;  // as in routes.cc
  const char* about;
  const Fields& (*fields)() = nullptr;  // of its body
  bool streams = false;                 // on request, or always
  const char* type = "application/json";
};

// THE LIST stands in openapi.cc.
const std::vector<Described>& described_routes();

Json openapi_json();
void openapi(App& app, const std::shared_ptr<Exchange>& exchange);

}  // namespace juno::server
