// SPDX-License-Identifier: Apache-2.0
// A running server: transport, keys and routes put together.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/auth.h"
#include "server/net/transport.h"
#include "server/origin.h"
#include "server/routes.h"

namespace juno::server {

struct ServerOptions {
  Listen listen;
  Keys keys;
  std::vector<std::string> cors_origins;  // pages of these may ask
  bool insecure_http = false;             // keys may travel unencrypted, because something else encrypts them
  Log access;                             // a line a request; no text of any
};

class Server final : private Front {
 public:
  // Whether start() will be allowed to listen there: kConfig says what is missing.
  static Result<void> check(const ServerOptions& options);
  // app outlives what stop() leaves.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, App& app);
  ~Server() override;

  std::string url() const;
  uint16_t port() const { return transport_->port(); }

  // From now on new requests get 503; returns when the others are answered or the time is over, or `enough`
  // says so. True: all were answered.
  bool drain(std::chrono::duration<double> grace, const std::atomic<bool>& enough);
  // Closes every connection. Exchanges may still be held; what they are told goes nowhere.
  void stop() { transport_->stop(); }

 private:
  Server(ServerOptions options, App& app);
  Verdict admit(HttpRequest& head) override;
  HttpReply spell(const Refusal& why, const HttpRequest& request) const override;
  void ended(const Ended& what) override;
  std::optional<Refusal> refuse(HttpRequest& head, const Router::Found& found) const;

  const ServerOptions options_;
  App& app_;
  const Router router_;
  OriginRules origins_;
  std::atomic<bool> draining_{false};
  std::unique_ptr<Transport> transport_;
};

}  // namespace juno::server
