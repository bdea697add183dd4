// SPDX-License-Identifier: Apache-2.0
// HTTP as routes see it: a request that has been read whole, and an exchange that is answered from any
// thread. Nothing here knows the library that speaks it.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace juno::server {

using Headers = std::vector<std::pair<std::string, std::string>>;

// Equal but for the case of their letters.
bool same_word(std::string_view a, std::string_view b);

struct HttpRequest {
  std::string method;  // HEAD arrives as GET; the body of the reply is left out by the transport
  std::string path;    // decoded, without the query
  std::string query;
  Headers headers;
  std::string body;
  std::string id;  // x-request-id: the client's or ours
  std::string
      tenant;  // of the key that was shown: "k" and the beginning of its hash; "" where no keys are set
  std::vector<std::string> parameters;  // what stood at {…} in the route's path

  std::optional<std::string_view> header(std::string_view name) const;  // case does not matter
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  Headers headers;
};

// One request and its answer. Every member may be called from any thread; none blocks. Whoever answers holds
// it.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;

  virtual void reply(HttpReply reply) = 0;  // once, or start()

  // A stream: the head, then pieces, then finish(), or abort() which lets the client see that it broke off.
  // While nothing is sent for ten seconds, a comment line keeps the connection alive.
  virtual void start(HttpReply head) = 0;
  virtual void send(std::string bytes) = 0;
  virtual void finish() = 0;
  virtual void abort() = 0;
  virtual size_t pending() const = 0;  // bytes that the client has not taken yet

  // Called once when the client has left before the answer was complete; at once if it has left already.
  virtual void on_close(std::function<void()> then) = 0;

  // Calls once after so long, unless the answer is complete by then.
  virtual void later(std::chrono::milliseconds after, std::function<void()> then) { (void)after, (void)then; }

  // Who the client says that it asks for: stands in the access log, hashed.
  virtual void log_user(std::string_view user) { (void)user; }
};

using Handler = std::function<void(std::shared_ptr<Exchange>)>;

struct Route {
  std::string method;  // GET stands for HEAD too
  std::string path;  // "/v1/models/{id}": {…} matches one segment, or the rest where it comes last as {…*}
  Handler handler;
  bool open = false;   // no key is asked for
  bool quick = false;  // never waits, so it may run on the thread that serves all connections
};

}  // namespace juno::server
