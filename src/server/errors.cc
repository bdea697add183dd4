// SPDX-License-Identifier: Apache-2.0
#include "server/errors.h"

#include <nlohmann/json.hpp>

namespace juno::server {

std::string error_json(std::string_view type, std::string_view code, const Param& param,
                       std::string_view message) {
  using Json = nlohmann::ordered_json;
  const Json error = {
      {"message", message}, {"type", type}, {"param", param ? Json(*param) : Json(nullptr)}, {"code", code}};
  return Json{{"error", error}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpReply error_reply(int status, std::string_view type, std::string_view code, const Param& param,
                      std::string_view message) {
  HttpReply reply{.status = status, .body = error_json(type, code, param, message)};
  if (status == 429 || status == 503) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

}  // namespace juno::server
