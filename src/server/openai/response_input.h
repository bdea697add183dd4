// SPDX-License-Identifier: Apache-2.0
// Items of /v1/responses become messages of chat completions.
#pragma once
#include <string>

#include "server/fields.h"

namespace juno::server {

// `earlier` and what the input adds to it. Throws invalid_value for an output of a call that none made.
Json input_messages(Json earlier, const Json& input);

}  // namespace juno::server
