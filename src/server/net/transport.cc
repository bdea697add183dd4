// SPDX-License-Identifier: Apache-2.0
#include "server/net/transport.h"

#include <malloc.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <random>
#include <thread>
#include <vector>

#include "server/net/connection.h"

namespace juno::server {

Refusal malformed(const error_code& why, const Limits& limits) {
  if (why == http::error::header_limit)
    return Refusal(431, kInvalidRequest, "headers_too_large", {},
                   fmt::format("The request's header has more than {} bytes.", limits.header));
  if (why == http::error::body_limit)
    return Refusal(413, kInvalidRequest, "request_too_large", {},
                   fmt::format("The request's body has more than {} bytes.", limits.body));
  return bad("invalid_value", {}, fmt::format("This is not HTTP/1.1: {}.", why.message()));
}

void give_back_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void run_handler(const Route& route, std::shared_ptr<Exchange> exchange, const Log& log) {
  std::string why = "an unknown exception";
  try {
    return route.handler(exchange);
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  log.warn("[server] {} {} failed: {}", route.method, route.path, why);
  exchange->reply(
      error_reply(500, kServerError, "internal_error", {}, "The server has a defect; its log says more."));
}

namespace {

using Secure = asio::ssl::stream<tcp::socket>;

asio::ssl::context tls_context(const Tls& tls) {
  asio::ssl::context context(asio::ssl::context::tls_server);
  const auto check = [](const error_code& ec, const char* option, const std::string& file) {
    if (ec) fail(Code::kConfig, "[server] {}: {} cannot be used: {}", option, file, ec.message());
  };
  error_code ec;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.use_certificate_chain_file(tls.certificate, ec);
  check(ec, "--tls-cert", tls.certificate);
  context.use_private_key_file(tls.key, asio::ssl::context::pem, ec);
  check(ec, "--tls-key", tls.key);
  if (tls.client_ca.empty()) return context;
  context.load_verify_file(tls.client_ca, ec);
  check(ec, "--tls-client-ca", tls.client_ca);
  context.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  // Without a name, resuming a session whose client was verified fails.
  SSL_CTX_set_session_id_context(context.native_handle(), reinterpret_cast<const unsigned char*>("juno"), 4);
  return context;
}

bool is_loopback(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  return address.is_loopback();
}

tcp::endpoint resolve(asio::io_context& io, const Listen& how) {
  error_code ec;
  const auto address = asio::ip::make_address(how.host, ec);
  if (!ec) return {address, how.port};
  const auto found = tcp::resolver(io).resolve(how.host, fmt::to_string(how.port), ec);
  if (ec || found.empty()) fail(Code::kUsage, "[server] --host {}: {}", how.host, ec.message());
  return found.begin()->endpoint();
}

}  // namespace

struct Transport::Parts {
  Parts(const Listen& l, Front& front)
      : how(l),
        shared{how,
               front,
               asio::thread_pool(how.workers),
               fmt::format("req-{:08x}", std::random_device()()),
               {},
               {},
               {},
               {},
               {}},
        io(how.io_threads),
        acceptor(io),
        retry(io) {
    if (how.tls) tls.emplace(tls_context(*how.tls));
    const tcp::endpoint wanted = resolve(io, how);
    error_code ec;
    acceptor.open(wanted.protocol(), ec);
    if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor.bind(wanted, ec);
    if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
    if (ec) fail(Code::kUsage, "[server] cannot listen on {} port {}: {}", how.host, how.port, ec.message());
    local = acceptor.local_endpoint();
    const std::string host = local.address().to_string();
    address = fmt::format("{}:{}", local.address().is_v6() ? "[" + host + "]" : host, local.port());
  }

  void run() {
    for (;;) try {
        io.run();
        return;
      } catch (const std::exception& e) {
        how.log.warn("[server] a connection failed: {}", e.what());
      }
  }

  void accept() {
    acceptor.async_accept(asio::any_io_executor(asio::make_strand(io)),
                          [this](const error_code& ec, tcp::socket socket) {
                            if (!acceptor.is_open()) return;
                            if (!ec) {
                              serve(std::move(socket));
                              return accept();
                            }
                            // No descriptors are left, most likely: some will be.
                            retry.expires_after(std::chrono::milliseconds(100));
                            retry.async_wait([this](const error_code& stopped) {
                              if (!stopped) accept();
                            });
                          });
  }

  void serve(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (shared.connections >= how.limits.connections) return turn_away(std::move(socket));
    if (tls) std::make_shared<Connection<Secure>>(shared, std::move(socket), *tls)->start();
    else std::make_shared<Connection<tcp::socket>>(shared, std::move(socket))->start();
  }

  void turn_away(tcp::socket socket) {
    if (tls) return;
    HttpReply reply =
        error_reply(503, kServerError, "server_overloaded", {}, "Too many connections are open.");
    reply.headers.emplace_back("x-request-id", fmt::format("{}-{:x}", shared.id_prefix, ++shared.ids));
    const std::string text = reply_head(reply, Framing::kLength, reply.body.size(), false) + reply.body;
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.send(asio::buffer(text), 0, ignored);
    socket.shutdown(tcp::socket::shutdown_both, ignored);
  }

  Listen how;
  std::optional<asio::ssl::context> tls;
  Shared shared;  // outlives the connections, which io holds
  asio::io_context io;
  tcp::acceptor acceptor;
  asio::steady_timer retry;
  tcp::endpoint local;
  std::string address;
  std::vector<std::thread> threads;
};

Transport::Transport(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Transport::~Transport() { stop(); }

Result<std::unique_ptr<Transport>> Transport::open(const Listen& how, Front& front) {
  return guard(
      [&] { return std::unique_ptr<Transport>(new Transport(std::make_unique<Parts>(how, front))); });
}

Result<void> Transport::check(const Listen& how, const std::string& public_fault) {
  return guard([&] {
    asio::io_context io;
    const auto address = resolve(io, how).address();
    if (!public_fault.empty() && !is_loopback(address))
      fail(Code::kConfig, "[server] --host {}: {}", how.host, public_fault);
    if (how.tls) tls_context(*how.tls);
  });
}

void Transport::start() {
  parts_->accept();
  for (int i = 0; i < parts_->how.io_threads; ++i) parts_->threads.emplace_back([this] { parts_->run(); });
}

void Transport::stop() {
  parts_->io.stop();
  for (std::thread& t : parts_->threads) t.join();
  parts_->threads.clear();
  parts_->shared.workers.stop();
  parts_->shared.workers.join();
  std::unique_lock lock(parts_->shared.mutex);
  const auto open = std::exchange(parts_->shared.open, {});
  lock.unlock();
  for (const auto& [unused, weak] : open)
    if (const auto connection = weak.lock()) connection->leave();
}

const std::string& Transport::address() const { return parts_->address; }
uint16_t Transport::port() const { return parts_->local.port(); }
bool Transport::loopback() const { return is_loopback(parts_->local.address()); }
int64_t Transport::connections() const { return parts_->shared.connections; }
int64_t Transport::answering() const { return parts_->shared.answering; }

}  // namespace juno::server
