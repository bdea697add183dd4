// SPDX-License-Identifier: Apache-2.0
// What GBNF and regular expressions have in common: alternatives of sequences of repeated items. A group is a
// rule of its own, so that no depth of brackets needs a deep stack.
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/chars.h"

namespace juno::grammar {

struct Item {
  Ranges chars = {};  // one of them, or
  int rule = -1;      // what this rule allows
  int32_t min = 1, max = 1;
};
using Sequence = std::vector<Item>;
using Alternatives = std::vector<Sequence>;

using Spell = std::function<NodeId(const Ranges& chars, NodeId next)>;
NodeId build(Builder& to, const Alternatives& alternatives, const Spell& spell, NodeId next);

// Characters of a text with its lines and columns.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool accept(char c);
  bool accept(std::string_view word);
  uint32_t character();  // a whole UTF-8 sequence; a byte that is none stands alone
  std::optional<uint32_t> hexadecimal(int digits);  // exactly so many
  std::optional<int32_t> number();                  // up to 1e6; nothing if there is none or it is larger
  size_t at() const { return at_; }
  int line() const;
  int column() const;

  static constexpr int32_t kMaxCount = 1000000;

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace juno::grammar
