// SPDX-License-Identifier: Apache-2.0
// The native routes: a text or a conversation in, a text out.
#pragma once
#include "server/app.h"
#include "server/fields.h"

namespace juno::server {

const Fields& inference_fields();

void inference(App& app, const std::shared_ptr<Exchange>& exchange);
void inference_stream(App& app, const std::shared_ptr<Exchange>& exchange);

}  // namespace juno::server
