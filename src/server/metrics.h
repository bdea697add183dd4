// SPDX-License-Identifier: Apache-2.0
// What the server counts, as Prometheus reads it. No text of a request ever stands here: labels are names of
// routes, models and outcomes. Every member may be called from any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/service.h"

namespace juno::server {

// A model as a scrape sees it.
struct ModelFigures {
  std::string model;
  api::Load load;
  Snapshot counters;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // By the transport.
  void http_request(std::string_view route, std::string_view method, int status, double seconds);
  void connections(int64_t now);

  // By the routes that generate; model: a name that is served, not one that a client made up.
  void submitted(std::string_view model, api::Priority priority);
  void first_token(std::string_view model, double seconds);  // since the request had arrived
  void inter_token(std::string_view model, double seconds);
  void outcome(std::string_view model, const api::Outcome& outcome);
  void ignored_field();  // with --unknown-fields warn

  // The text of /metrics.
  std::string text(const std::vector<ModelFigures>& models) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace juno::server
