// SPDX-License-Identifier: Apache-2.0
// Why a request is not served, before it is spelled out as one route or another spells its errors.
#pragma once
#include <exception>
#include <string>
#include <utility>

#include "server/errors.h"

namespace juno::server {

struct Refusal : std::exception {
  Refusal(int status_, std::string_view type_, std::string_view code_, Param param_, std::string message_)
      : status(status_), type(type_), code(code_), param(std::move(param_)), message(std::move(message_)) {}
  const char* what() const noexcept override { return message.c_str(); }

  int status;
  std::string type, code;
  Param param;
  std::string message;
  Headers headers = {};
};

// 400 invalid_request_error.
inline Refusal bad(std::string_view code, Param param, std::string message) {
  return Refusal(400, kInvalidRequest, code, std::move(param), std::move(message));
}

// As the OpenAI routes spell it.
inline HttpReply openai_reply(const Refusal& why) {
  HttpReply out = error_reply(why.status, why.type, why.code, why.param, why.message);
  for (const auto& header : why.headers) out.headers.push_back(header);
  return out;
}

}  // namespace juno::server
