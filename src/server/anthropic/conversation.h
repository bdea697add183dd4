// SPDX-License-Identifier: Apache-2.0
// Turns of /v1/messages become a conversation as templates take it.
#pragma once
#include "server/fields.h"
#include "server/openai/conversation.h"

namespace juno::server {

// What the table cannot say about messages, thinking and tools.
void check_turns(const Values& values, Check& check);

// All but its tools, of a checked body.
Conversation read_turns(const Values& values);

}  // namespace juno::server
