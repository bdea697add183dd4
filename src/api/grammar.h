// SPDX-License-Identifier: Apache-2.0
// What a reply is held to, from its text.
#pragma once
#include <memory>
#include <string_view>

#include "base/error.h"

namespace juno::grammar {
struct Automaton;
}

namespace juno::api {

using Grammar = std::shared_ptr<const grammar::Automaton>;

// kBadData with line and column.
Result<Grammar> read_gbnf(std::string_view text);
// kBadData with keyword and JSON pointer.
Result<Grammar> read_json_schema(std::string_view text);

}  // namespace juno::api
