// SPDX-License-Identifier: Apache-2.0
// What a reply is held to. It fails closed: what does not compile is refused before anything runs.
#pragma once
#include <functional>
#include <string>

#include "grammar/automaton.h"
#include "server/json.h"

namespace juno::server {

// All throw Refusal with this param: invalid_json_schema, unsupported_json_schema (with keyword and JSON
// pointer) or invalid_grammar (with line and column).
grammar::Automaton compile_schema(const Json& schema, const std::string& param);
grammar::Automaton compile_grammar(const std::string& gbnf, const std::string& param);
// Runs what compiles something of the schemas at `param`.
grammar::Automaton compiled(const std::string& param, const std::function<grammar::Automaton()>& compile);

// The texts of both.
grammar::Automaton either(const grammar::Automaton& a, const grammar::Automaton& b);

}  // namespace juno::server
