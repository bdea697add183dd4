// SPDX-License-Identifier: Apache-2.0
// Speaks HTTP/1.1, with TLS if wanted, for whoever decides what is served. It holds the limits on what a
// client may send and how slowly; everything it knows of a request's meaning it asks its Front.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "server/refusal.h"

namespace juno::server {

struct Limits {
  using Seconds = std::chrono::duration<double>;
  size_t header = 32 << 10;
  uint64_t body = uint64_t{32} << 20;
  int64_t connections = 4096;
  Seconds head_time{10};         // from a request's first byte to the end of its header
  Seconds body_grace{5};         // a body may come this much later than body_rate allows
  double body_rate = 1024;       // bytes a second
  Seconds idle{75};              // between two requests of a connection
  Seconds quiet{9};              // a stream that is silent for so long gets a comment line
  Seconds write_time{30};        // a client that takes nothing for so long is dropped
  size_t stream_room = 1 << 20;  // so is one for which so many bytes of a stream wait
  Seconds linger{2};             // for a client to see the last reply of a connection
};

struct Tls {
  std::string certificate, key, client_ca;  // PEM files; client_ca "": clients need no certificate
};

struct Listen {
  std::string host = "127.0.0.1";  // an address, or a name of one
  uint16_t port = 0;               // 0: any free one
  std::optional<Tls> tls;
  Limits limits;
  int io_threads = 2;
  int workers = 16;  // run the handlers that may wait
  Log log;
};

// What becomes of a request whose head is there.
struct Verdict {
  std::optional<HttpReply> refusal;
  const Route* route = nullptr;  // null only with a refusal of what no route is
  Headers extra;                 // for the reply, whatever it is
};

// How a request ended, for the log and for counting.
struct Ended {
  const HttpRequest& request;
  const Route* route;  // null: none
  int status = 0;      // 0: the client left before any
  uint64_t bytes = 0;  // of the reply's body
  double seconds = 0;
  bool complete = false;
  std::string user;
};

class Front {
 public:
  virtual ~Front() = default;
  // On an IO thread; fills in tenant and parameters.
  virtual Verdict admit(HttpRequest& head) = 0;
  // A refusal as the clients of the request's path read them; nothing of a request may be known yet.
  virtual HttpReply spell(const Refusal& why, const HttpRequest& request) const {
    (void)request;
    return openai_reply(why);
  }
  virtual void ended(const Ended& what) = 0;
};

class Transport {
 public:
  // Whether open() can be expected to work: kUsage for a host that is none, kConfig for certificates, and for
  // an address that other machines can reach when there is a reason, public_fault, why it must not be that.
  static Result<void> check(const Listen& how, const std::string& public_fault);
  // Connections wait until start(). kUsage for an address that cannot be had.
  static Result<std::unique_ptr<Transport>> open(const Listen& how, Front& front);
  ~Transport();

  void start();

  const std::string& address() const;  // "127.0.0.1:8080", "[::1]:8080"
  uint16_t port() const;
  bool loopback() const;
  int64_t connections() const;
  int64_t answering() const;  // requests that are not answered yet

  // No thread runs in it any more, and no answer goes out. Exchanges may still be held.
  void stop();

 private:
  struct Parts;
  explicit Transport(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace juno::server
