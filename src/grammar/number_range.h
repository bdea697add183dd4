// SPDX-License-Identifier: Apache-2.0
// Decimal numbers between two bounds, digit by digit: no bound is rounded, however long it is.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "grammar/automaton.h"

namespace juno::grammar {

// ±whole.fraction; no leading zeros but a single 0, no trailing zeros. Zero is not negative.
struct Decimal {
  bool negative = false;
  std::string whole = "0", fraction = {};

  // A JSON number. Nothing when it has more than kMaxDigits digits written out.
  static std::optional<Decimal> parse(std::string_view json_number);
  static constexpr int kMaxDigits = 400;

  bool zero() const { return whole == "0" && fraction.empty(); }
  int compare(const Decimal& other) const;  // <0, 0, >0
};

struct Bound {
  Decimal at;
  bool exclusive = false;
};

struct NumberRange {
  std::optional<Bound> low, high;
  bool integers = false;
  bool bounded() const { return low || high; }
  bool empty() const;
};

// A number of the range in JSON, without exponent where it is bounded; then `next`.
NodeId json_number(Builder& to, const NumberRange& range, NodeId next);

}  // namespace juno::grammar
