// SPDX-License-Identifier: Apache-2.0
// JSON Schema (draft 2020-12) as an automaton of the JSON texts that satisfy it: keys in the order of
// `properties`, other keys last, little white space. A keyword that cannot be held to is refused, never
// ignored.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "grammar/automaton.h"

namespace juno::grammar {

// Throws Fault with keyword and JSON pointer. `schema` is JSON text.
Automaton compile_json_schema(std::string_view schema);
// The same for the schema at a JSON pointer inside `document`, which must be there.
Automaton compile_json_schema(const nlohmann::ordered_json& document, const std::string& pointer);

}  // namespace juno::grammar
