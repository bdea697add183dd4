// SPDX-License-Identifier: Apache-2.0
// Why a grammar or schema was refused. Nothing runs without the grammar that was asked for.
#pragma once
#include <string>

#include "base/error.h"

namespace juno::grammar {

enum class Refusal : uint8_t {
  kInvalidGrammar,     // not GBNF
  kInvalidSchema,      // not a JSON schema, or one that nothing satisfies
  kUnsupportedSchema,  // a keyword that cannot be held to
};

struct Fault : Error {
  Fault(Refusal why, std::string text) : Error(Code::kBadData, std::move(text)), refusal(why) {}
  Refusal refusal;
  std::string keyword, pointer;  // of a schema: the keyword at fault and the JSON pointer of its object
  int line = 0, column = 0;      // of a grammar, from 1
};

}  // namespace juno::grammar
