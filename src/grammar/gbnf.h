// SPDX-License-Identifier: Apache-2.0
// GBNF, the grammar notation of llama.cpp (grammars/README.md there): rules `name ::= …` of "literals",
// [classes], ., (groups), | and the repetitions * + ? {n} {n,} {n,m}; # begins a comment. `root` is the whole
// text.
#pragma once
#include <string_view>

#include "grammar/automaton.h"

namespace juno::grammar {

inline constexpr size_t kMaxGrammarBytes = 64 * 1024;

// Throws Fault with the line and column.
Automaton compile_gbnf(std::string_view text);

}  // namespace juno::grammar
