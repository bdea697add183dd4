// SPDX-License-Identifier: Apache-2.0
// Asks one server, over HTTP or HTTPS. It follows no redirect, and shows its key to that server alone.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace juno::cli {

struct ServerAddress {
  std::string url;          // http://host[:port][/prefix] or https://…; a /v1 at its end is taken off
  std::string key;          // "": none
  std::string ca_file;      // PEM of authorities to trust; "": those of the system
  double patience = 1e100;  // seconds that the server may be silent
};

class HttpClient {
 public:
  // kUsage for an address that is none, or a key that would go unencrypted over a network.
  explicit HttpClient(ServerAddress address);
  ~HttpClient();

  struct Reply {
    int status = 0;
    std::string body;
    bool cancelled = false;
  };
  using OnBytes = std::function<void(std::string_view)>;

  // GET, or POST of a JSON body. With on_bytes a 2xx body goes there, piece by piece as it comes, instead of
  // into the reply. kFailed says why there is no reply.
  Reply ask(const std::string& path, const std::string& body = "", const OnBytes& on_bytes = {});
  // The body of a 2xx reply; any other is thrown as kFailed with the server's own sentence.
  std::string fetch(const std::string& path);
  static void refuse(const Reply& reply);

  // Ends ask() soon; what it had is kept. From any thread, and from a signal's handler.
  void cancel() { cancelled_ = true; }
  const std::string& url() const { return url_; }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::string url_;  // without its end
  std::atomic<bool> cancelled_{false};
};

}  // namespace juno::cli
