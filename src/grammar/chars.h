// SPDX-License-Identifier: Apache-2.0
// Sets of Unicode characters, and the bytes that spell them in UTF-8 or inside a JSON string.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/automaton.h"

namespace juno::grammar {

// Code points, both ends included.
using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;

inline constexpr uint32_t kLastChar = 0x10ffff;

// Sorted, joined, without surrogates.
Ranges tidy(Ranges ranges);
Ranges all_but(const Ranges& ranges);

// One character of the set, then `next`.
NodeId utf8(Builder& to, const Ranges& ranges, NodeId next);

// How a JSON string spells characters, each in exactly one way: as itself, where JSON allows that; \" \\ \b
// \f \n \r \t; \u00xx for the other control characters.
NodeId json_char(Builder& to, const Ranges& ranges, NodeId next);
NodeId json_text(Builder& to, std::string_view utf8_text, NodeId next);  // without quotes

}  // namespace juno::grammar
