// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <fmt/chrono.h>

#include <ctime>
#include <thread>

#include "server/anthropic/errors.h"

namespace juno::server {
namespace {

std::string public_fault(const ServerOptions& o) {
  if (o.keys.empty())
    return "it can be reached from other machines and no key is set: give --api-key-file or JUNO_API_KEY";
  if (!o.listen.tls && !o.insecure_http)
    return "it can be reached from other machines and keys would travel unencrypted: give --tls-cert and "
           "--tls-key, or --insecure-http when something in front of it encrypts";
  return "";
}

Refusal no_key(const HttpRequest& request) {
  Refusal why(401, kInvalidRequest, "invalid_api_key", {},
              "A valid API key is needed: Authorization: Bearer KEY.");
  // A browser that opens the page can ask its user.
  const bool page = request.header("accept").value_or("").find("text/html") != std::string_view::npos;
  why.headers.emplace_back("WWW-Authenticate",
                           page ? "Basic realm=\"juno\", charset=\"UTF-8\"" : "Bearer realm=\"juno\"");
  return why;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// "application/json" with no charset but utf-8.
bool is_json(std::string_view type) {
  size_t end = type.find(';');
  if (!same_word(trimmed(type.substr(0, end)), "application/json")) return false;
  while (end != type.npos) {
    type.remove_prefix(end + 1);
    end = type.find(';');
    const std::string_view parameter = trimmed(type.substr(0, end));
    const size_t equals = parameter.find('=');
    if (!same_word(parameter.substr(0, equals), "charset")) continue;
    const std::string_view charset = equals == type.npos ? "" : parameter.substr(equals + 1);
    if (!same_word(charset, "utf-8") && !same_word(charset, "\"utf-8\"")) return false;
  }
  return true;
}

std::optional<Refusal> wrong_media_type(const HttpRequest& request) {
  const auto type = request.header("content-type");
  if (request.method == "GET" || ((!type || is_json(*type)) && !request.header("content-encoding")))
    return {};
  return Refusal(415, kInvalidRequest, "unsupported_media_type", {},
                 "The body must be application/json in UTF-8 without a Content-Encoding.");
}

Headers cors_headers(const HttpRequest& request, bool preflight) {
  Headers headers = {{"Access-Control-Allow-Origin", std::string(request.header("origin").value_or(""))},
                     {"Vary", "Origin"},
                     {"Access-Control-Expose-Headers",
                      "x-request-id, X-Juno-Latency-Ms, Retry-After, x-juno-ignored-fields, "
                      "x-juno-prompt-tokens, x-juno-context-length"}};
  if (!preflight) return headers;
  headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE");
  headers.emplace_back("Access-Control-Allow-Headers",
                       std::string(request.header("access-control-request-headers").value_or("")));
  headers.emplace_back("Access-Control-Max-Age", "600");
  return headers;
}

}  // namespace

Server::Server(ServerOptions options, App& app)
    : options_(std::move(options)), app_(app), router_(routes(app)) {}

Server::~Server() = default;

Result<void> Server::check(const ServerOptions& options) {
  return Transport::check(options.listen, public_fault(options));
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, App& app) {
  return guard([&] {
    take(check(options));
    std::unique_ptr<Server> server(new Server(std::move(options), app));
    const ServerOptions& o = server->options_;
    server->transport_ = take(Transport::open(o.listen, *server));
    server->origins_ = {server->transport_->loopback(), server->transport_->port(), o.cors_origins};
    server->transport_->start();
    return server;
  });
}

std::string Server::url() const {
  return fmt::format("{}://{}", options_.listen.tls ? "https" : "http", transport_->address());
}

bool Server::drain(std::chrono::duration<double> grace, const std::atomic<bool>& enough) {
  draining_ = true;
  const auto until = std::chrono::steady_clock::now() + grace;
  while (transport_->answering() > 0 && !enough && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return transport_->answering() == 0;
}

// In the order of the contract: key, route, method, media type; the transport goes on with the size.
std::optional<Refusal> Server::refuse(HttpRequest& head, const Router::Found& found) const {
  const bool open = found.route && found.route->open;
  if (!options_.keys.empty() && !open) {
    const auto tenant = options_.keys.tenant(head);
    if (!tenant) return no_key(head);
    head.tenant = *tenant;
  }
  if (draining_) return Refusal(503, kServerError, "shutting_down", {}, "The server is shutting down.");
  if (found.route) return wrong_media_type(head);
  if (found.allow.empty())
    return Refusal(404, kInvalidRequest, "unknown_url", {},
                   head.path.empty() ? "The request's target is no path."
                                     : fmt::format("There is nothing at {} {}.", head.method, head.path));
  Refusal why(405, kInvalidRequest, "method_not_allowed", {},
              fmt::format("{} takes {}, not {}.", head.path, found.allow, head.method));
  why.headers.emplace_back("Allow", found.allow);
  return why;
}

Verdict Server::admit(HttpRequest& head) {
  app_.metrics.connections(transport_->connections());  // what a scrape finds is of its own moment
  if (!head.header("host"))
    return {.refusal = spell(bad("invalid_value", {}, "The request has no Host header."), head)};
  const Origin origin = judge_origin(head, origins_);
  if (origin == Origin::kForeign)
    return {.refusal =
                spell(Refusal(403, kInvalidRequest, "origin_not_allowed", {},
                              "This Host or Origin may not use this server; --cors-origin allows one."),
                      head)};
  Verdict verdict;
  if (origin == Origin::kAllowed) {
    const bool preflight =
        head.method == "OPTIONS" && head.header("access-control-request-method").has_value();
    verdict.extra = cors_headers(head, preflight);
    if (preflight) {
      verdict.refusal = HttpReply{.status = 204, .type = ""};
      return verdict;
    }
  }
  Router::Found found = router_.find(head.method, head.path);
  if (const auto why = refuse(head, found)) verdict.refusal = spell(*why, head);
  verdict.route = found.route;
  head.parameters = std::move(found.parameters);
  return verdict;
}

HttpReply Server::spell(const Refusal& why, const HttpRequest& request) const {
  const bool anthropic = request.path == "/v1/messages" || request.path.starts_with("/v1/messages/");
  return anthropic ? anthropic_reply(why, request) : openai_reply(why);
}

// The route's pattern stands for the path, which may hold what only its client should know.
void Server::ended(const Ended& what) {
  const HttpRequest& request = what.request;
  const std::string_view route = what.route ? std::string_view(what.route->path) : "-";
  const std::string_view method = what.route ? std::string_view(what.route->method) : "-";
  app_.metrics.http_request(route, method, what.status, what.seconds);
  options_.access.info("{:%Y-%m-%dT%H:%M:%SZ} {} {} {} status={} bytes={} ms={:.1f} key={} user={}{}",
                       fmt::gmtime(std::time(nullptr)), request.id, method, route, what.status, what.bytes,
                       what.seconds * 1e3, request.tenant.empty() ? "-" : request.tenant,
                       what.user.empty() ? "-" : what.user, what.complete ? "" : " broken-off");
}

}  // namespace juno::server
