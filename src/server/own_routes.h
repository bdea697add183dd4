// SPDX-License-Identifier: Apache-2.0
// Routes about the server itself.
#pragma once
#include "server/app.h"

namespace juno::server {

void health(App& app, const std::shared_ptr<Exchange>& exchange);
void metrics(App& app, const std::shared_ptr<Exchange>& exchange);
void props(App& app, const std::shared_ptr<Exchange>& exchange);
void list_sessions(App& app, const std::shared_ptr<Exchange>& exchange);
void end_session(App& app, const std::shared_ptr<Exchange>& exchange);

}  // namespace juno::server
