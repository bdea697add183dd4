// SPDX-License-Identifier: Apache-2.0
#include "api/grammar.h"

#include "grammar/gbnf.h"
#include "grammar/json_schema.h"

namespace juno::api {

Result<Grammar> read_gbnf(std::string_view text) {
  return guard(
      [&]() -> Grammar { return std::make_shared<const grammar::Automaton>(grammar::compile_gbnf(text)); });
}

Result<Grammar> read_json_schema(std::string_view text) {
  return guard([&]() -> Grammar {
    return std::make_shared<const grammar::Automaton>(grammar::compile_json_schema(text));
  });
}

}  // namespace juno::api
