// SPDX-License-Identifier: Apache-2.0
// Text of any kind up to a mark, and text that does not begin in a certain way.
#pragma once
#include <string_view>
#include <vector>

#include "grammar/automaton.h"

namespace juno::grammar {

enum class Ending : uint8_t {
  kMark,    // the mark must come
  kAnyTime  // the text may also end before it
};

// Any bytes without `mark`, then `mark`, then `next`. The automaton of Knuth, Morris and Pratt: as many
// states as the mark has bytes, and one way to read any text.
NodeId text_until(Builder& to, std::string_view mark, Ending ending, NodeId next);

// Any bytes that begin with none of the heads, then the end.
NodeId text_unless(Builder& to, const std::vector<std::string_view>& heads);

}  // namespace juno::grammar
