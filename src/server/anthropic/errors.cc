// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/errors.h"

namespace juno::server {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 500:
      return "api_error";
    case 503:
      return "overloaded_error";
    default:
      return "invalid_request_error";
  }
}

// There is no param beside the message, so it must name the field.
std::string message_of(const Refusal& why) {
  const bool named = !why.param || why.message.find(*why.param) != std::string::npos;
  return named ? why.message : "'" + *why.param + "': " + why.message;
}

}  // namespace

Json anthropic_error(const Refusal& why, const HttpRequest& request) {
  return {{"type", "error"},
          {"error", {{"type", type_of(why.status)}, {"message", message_of(why)}}},
          {"request_id", request.id}};
}

HttpReply anthropic_reply(const Refusal& why, const HttpRequest& request) {
  HttpReply reply = openai_reply(why);
  reply.body = to_text(anthropic_error(why, request));
  reply.headers.emplace_back("request-id", request.id);
  return reply;
}

void answer_anthropic(const std::shared_ptr<Exchange>& exchange, const std::function<void()>& body) {
  const auto refuse = [&](const Refusal& why) { exchange->reply(anthropic_reply(why, exchange->request())); };
  try {
    body();
  } catch (const Refusal& why) {
    refuse(why);
  } catch (const std::exception& e) {
    refuse(Refusal(500, kServerError, "internal_error", {}, e.what()));
  }
}

}  // namespace juno::server
