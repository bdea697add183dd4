// SPDX-License-Identifier: Apache-2.0
#include "cli/http_client.h"

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/version.h"
#include "cli/format.h"

namespace juno::cli {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr uint64_t kLargest = uint64_t{64} << 20;  // bytes of a reply that is kept whole

struct Cancelled {};

struct Url {
  bool tls = false;
  std::string authority, host, port, prefix;
};

[[noreturn]] void bad_url(const std::string& text) {
  fail(Code::kUsage, "[cli] --url: \"{}\" is not an address like http://127.0.0.1:8080", printable(text));
}

Url parse_url(const std::string& text) {
  Url url;
  const size_t scheme = text.find("://");
  const std::string name = text.substr(0, scheme);
  if (scheme == text.npos || (name != "http" && name != "https")) bad_url(text);
  url.tls = name == "https";
  const std::string rest = text.substr(scheme + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  url.authority = rest.substr(0, slash);
  url.prefix = rest.substr(slash);
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  if (url.prefix.ends_with("/v1")) url.prefix.resize(url.prefix.size() - 3);
  const bool bracketed = url.authority.starts_with('[');
  const size_t end = bracketed ? url.authority.find(']') : url.authority.find(':');
  if (bracketed && end == url.authority.npos) bad_url(text);
  url.host = bracketed ? url.authority.substr(1, end - 1) : url.authority.substr(0, end);
  const size_t colon = bracketed ? end + 1 : end;
  const bool has_port = colon < url.authority.size();
  url.port = has_port ? url.authority.substr(colon + 1) : url.tls ? "443" : "80";
  const bool digits = !url.port.empty() && url.port.size() <= 5 &&
                      std::ranges::all_of(url.port, [](char c) { return c >= '0' && c <= '9'; });
  const bool odd =
      std::ranges::any_of(text, [](char c) { return c <= ' ' || c == '@' || c == '?' || c == '#'; });
  if (url.host.empty() || !digits || odd || (has_port && url.authority[colon] != ':')) bad_url(text);
  return url;
}

bool is_loopback(const std::string& host) {
  error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  return host == "localhost" || (!error && address.is_loopback());
}

}  // namespace

struct HttpClient::Parts {
  Url url;
  ServerAddress address;
  asio::io_context io;
  ssl::context tls{ssl::context::tls_client};
  const std::atomic<bool>* cancelled = nullptr;

  // Does what `start` begins; ends it when cancelled, or when nothing happened for `seconds`.
  template <class Start>
  error_code run(beast::tcp_stream& socket, double seconds, Start start) {
    std::optional<error_code> done;
    bool late = false;
    start([&done](error_code error, auto&&...) { done = error; });
    const auto begun = Clock::now();
    io.restart();
    while (!done) {
      io.run_for(50ms);
      late = std::chrono::duration<double>(Clock::now() - begun).count() > seconds;
      if (*cancelled || late) socket.close();
    }
    if (*cancelled) throw Cancelled();
    return late ? error_code(asio::error::timed_out) : *done;
  }

  [[noreturn]] void lost(const char* what, const error_code& error) const {
    fail(Code::kFailed, "[cli] {} {}: {}", what, address.url, printable(error.message()));
  }

  void connect(beast::tcp_stream& socket) {
    asio::ip::tcp::resolver resolver(io);
    error_code error;
    const auto found = resolver.resolve(url.host, url.port, error);
    if (!error) error = run(socket, 10, [&](auto then) { socket.async_connect(found, then); });
    if (error) lost("cannot reach", error);
  }

  template <class Stream>
  Reply exchange(Stream& stream, const http::request<http::string_body>& request, const OnBytes& on_bytes);
};

template <class Stream>
HttpClient::Reply HttpClient::Parts::exchange(Stream& stream, const http::request<http::string_body>& request,
                                              const OnBytes& on_bytes) {
  auto& socket = beast::get_lowest_layer(stream);
  error_code error = run(socket, 60, [&](auto then) { http::async_write(stream, request, then); });
  if (error) lost("cannot ask", error);
  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(UINT64_MAX);  // none: Boost 1.74 takes it for 0
  error = run(socket, address.patience,
              [&](auto then) { http::async_read_header(stream, buffer, parser, then); });
  if (error) lost("no answer from", error);
  Reply reply{.status = static_cast<int>(parser.get().result_int())};
  const bool whole = !on_bytes || reply.status / 100 != 2;
  std::array<char, 16384> piece;
  while (!parser.is_done()) {
    parser.get().body() = {.data = piece.data(), .size = piece.size(), .more = true};
    error = run(socket, address.patience,
                [&](auto then) { http::async_read_some(stream, buffer, parser, then); });
    const std::string_view bytes(piece.data(), piece.size() - parser.get().body().size);
    if (whole) reply.body += bytes;
    else if (!bytes.empty()) on_bytes(bytes);
    if (error && error != http::error::need_buffer) lost("the answer broke off from", error);
    if (reply.body.size() > kLargest)
      fail(Code::kFailed, "[cli] {} answers with more than {} bytes", address.url, kLargest);
  }
  return reply;
}

HttpClient::HttpClient(ServerAddress address) : parts_(std::make_unique<Parts>()) {
  parts_->url = parse_url(address.url);
  parts_->address = std::move(address);
  parts_->cancelled = &cancelled_;
  const Url& url = parts_->url;
  url_ = fmt::format("{}://{}{}", url.tls ? "https" : "http", url.authority, url.prefix);
  const ServerAddress& given = parts_->address;
  if (!given.key.empty() && !url.tls && !is_loopback(url.host))
    fail(Code::kUsage, "[cli] --url: the key would go to {} unencrypted; use https", url.host);
  const auto odd = [](char c) { return c <= ' ' || c > '~'; };
  if (std::ranges::any_of(given.key, odd))
    fail(Code::kUsage, "[cli] the key holds a character that no key has");
  if (!url.tls) return;
  error_code error;
  if (given.ca_file.empty()) parts_->tls.set_default_verify_paths(error);
  else parts_->tls.load_verify_file(given.ca_file, error);
  if (error) fail(Code::kNoInput, "[cli] --ca-file: cannot read {}: {}", given.ca_file, error.message());
  parts_->tls.set_verify_mode(ssl::verify_peer);
}

HttpClient::~HttpClient() = default;

HttpClient::Reply HttpClient::ask(const std::string& path, const std::string& body, const OnBytes& on_bytes) {
  const Url& url = parts_->url;
  http::request<http::string_body> request(body.empty() ? http::verb::get : http::verb::post,
                                           url.prefix + path, 11);
  request.set(http::field::host, url.authority);
  request.set(http::field::user_agent, fmt::format("juno/{}", kVersion));
  request.set(http::field::connection, "close");
  if (!parts_->address.key.empty()) request.set(http::field::authorization, "Bearer " + parts_->address.key);
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = body;
  request.prepare_payload();
  cancelled_ = false;
  try {
    if (!url.tls) {
      beast::tcp_stream socket(parts_->io);
      parts_->connect(socket);
      return parts_->exchange(socket, request, on_bytes);
    }
    beast::ssl_stream<beast::tcp_stream> stream(parts_->io, parts_->tls);
    SSL_set_tlsext_host_name(stream.native_handle(), url.host.c_str());
    stream.set_verify_callback(ssl::host_name_verification(url.host));
    auto& socket = beast::get_lowest_layer(stream);
    parts_->connect(socket);
    const error_code error =
        parts_->run(socket, 10, [&](auto then) { stream.async_handshake(ssl::stream_base::client, then); });
    if (error) parts_->lost("no trust in", error);
    return parts_->exchange(stream, request, on_bytes);
  } catch (const Cancelled&) {
    return {.cancelled = true};
  }
}

std::string HttpClient::fetch(const std::string& path) {
  Reply reply = ask(path);
  refuse(reply);
  return std::move(reply.body);
}

void HttpClient::refuse(const Reply& reply) {
  if (reply.cancelled) throw Error(Code::kInterrupted, "[cli] interrupted");
  if (reply.status / 100 == 2) return;
  const auto json = nlohmann::json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
  std::string said;
  if (json.is_object() && json.contains("error") && json["error"].is_object() &&
      json["error"].contains("message") && json["error"]["message"].is_string())
    said = json["error"]["message"];
  if (reply.status == 401 && said.empty()) said = "a key is asked for";
  fail(Code::kFailed, "[cli] the server answers with {}{}{}", reply.status, said.empty() ? "" : ": ",
       printable(said));
}

}  // namespace juno::cli
