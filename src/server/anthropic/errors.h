// SPDX-License-Identifier: Apache-2.0
// Refusals as the Anthropic API spells them: {"type": "error", "error": {type, message}, "request_id"}.
#pragma once
#include <functional>
#include <memory>

#include "server/json.h"
#include "server/refusal.h"

namespace juno::server {

Json anthropic_error(const Refusal& why, const HttpRequest& request);
HttpReply anthropic_reply(const Refusal& why, const HttpRequest& request);

// Runs a route's body; what it throws becomes the reply.
void answer_anthropic(const std::shared_ptr<Exchange>& exchange, const std::function<void()>& body);

}  // namespace juno::server
