// SPDX-License-Identifier: Apache-2.0
// Tools whose name stands beside their type instead of under "function": those of /v1/responses and
// /v1/messages.
#pragma once
#include "server/fields.h"

namespace juno::server {

// In the form of chat completions. schema: the name that the tools' parameters have.
Json chat_tools(const Json& flat, const char* schema);

// Of a name that stands twice, and of a tool_choice among tools that are not there; named: the type of
// a choice that names one.
void check_flat_tools(const Values& values, std::string_view named, Check& check);

}  // namespace juno::server
