// SPDX-License-Identifier: Apache-2.0
// The fields of the Anthropic routes, as data (server/fields.h).
#pragma once
#include "server/fields.h"

namespace juno::server {

const Fields& message_fields();
const Fields& count_tokens_fields();

}  // namespace juno::server
