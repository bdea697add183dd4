// SPDX-License-Identifier: Apache-2.0
// What every route of one server is handed.
#pragma once
#include <memory>

#include "server/http.h"
#include "server/metrics.h"
#include "server/response_store.h"

namespace juno::api {
class Models;
}

namespace juno::server {

struct App {
  api::Models& models;
  Metrics& metrics;
  bool warn_unknown = false;     // --unknown-fields warn: serve, and say what was ignored
  bool store_responses = false;  // --store-responses
  double watchdog = 60;          // --watchdog: seconds without a step, after which work is taken for dead
  ResponseStore responses = {};
};

// What answers a route. Runs on a thread that may wait, unless its line in routes.cc says quick.
using Handle = void (*)(App&, const std::shared_ptr<Exchange>&);

}  // namespace juno::server
