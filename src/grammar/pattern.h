// SPDX-License-Identifier: Apache-2.0
// Regular expressions as JSON Schema uses them (ECMA-262): a search unless anchored. Refused: back
// references, lookaround, word boundaries, anchors in the middle.
#pragma once
#include <string_view>

#include "grammar/automaton.h"

namespace juno::grammar {

// The content of a JSON string in which `pattern` is found, without the quotes; then `next`. Throws Error
// that says what is not understood and where.
NodeId json_pattern(Builder& to, std::string_view pattern, NodeId next);

}  // namespace juno::grammar
