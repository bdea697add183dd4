// SPDX-License-Identifier: Apache-2.0
// Errors as clients see them: {"error": {message, type, param, code}} and nothing beside it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "server/http.h"

namespace juno::server {

inline constexpr std::string_view kInvalidRequest = "invalid_request_error";
inline constexpr std::string_view kRateLimit = "rate_limit_error";
inline constexpr std::string_view kServerError = "server_error";

using Param = std::optional<std::string>;  // the field at fault, as the client wrote it; none: null

// The error object alone, as a stream's last event carries it. Bytes that are no UTF-8 become U+FFFD.
std::string error_json(std::string_view type, std::string_view code, const Param& param,
                       std::string_view message);

// Every status that a server answers with "later" must say when: 429 and 503 carry Retry-After.
HttpReply error_reply(int status, std::string_view type, std::string_view code, const Param& param,
                      std::string_view message);

}  // namespace juno::server
