// SPDX-License-Identifier: Apache-2.0
// The routes of the Anthropic API.
#pragma once
#include "server/app.h"

namespace juno::server {

void messages(App& app, const std::shared_ptr<Exchange>& exchange);
void count_tokens(App& app, const std::shared_ptr<Exchange>& exchange);

}  // namespace juno::server
