// SPDX-License-Identifier: Apache-2.0
// The tests that follow "is".
#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_operators.h"

namespace juno::tokenizer::jinja {

namespace {

int64_t remainder(Bound& b, int64_t by) {
  Value r = modulo(b.in, b.self, by);
  return r.number() ? static_cast<int64_t>(*r.number()) : 0;
}

Value sequence(Bound& b) {
  const List* l = b.self.list();
  return b.self.text() || b.self.dict() || b.self.is_undefined() || (l && l->kind <= ListKind::kRange);
}

Value iterable(Bound& b) { return b.self.text() || b.self.dict() || b.self.list() || b.self.is_undefined(); }

// All letters of one case, and at least one letter.
template <bool (*wanted)(uint32_t), bool (*other)(uint32_t)>
Value cased(Bound& b) {
  Text t = to_text(b.in, b.self);
  bool any = false;
  for (size_t at = 0, n; at < t.size(); at += n) {
    n = char_bytes(t.bytes(), at);
    uint32_t code = code_point(std::string_view(t.bytes()).substr(at, n));
    if (other(code)) return false;
    any |= wanted(code);
  }
  return any;
}

Value same(Bound& b) {
  if (b.self.list() || b.self.dict() || b.self.object()) {
    return b.self.list() == b[0].list() && b.self.dict() == b[0].dict() && b.self.object() == b[0].object();
  }
  return type_name(b.self) == type_name(b[0]) && equal(b.in, b.self, b[0]);
}

Value at_most(Bound& b) { return less(b.in, b.self, b[0]) || equal(b.in, b.self, b[0]); }
Value at_least(Bound& b) { return less(b.in, b[0], b.self) || equal(b.in, b.self, b[0]); }
Value below(Bound& b) { return less(b.in, b.self, b[0]); }
Value above(Bound& b) { return less(b.in, b[0], b.self); }
Value equals(Bound& b) { return equal(b.in, b.self, b[0]); }
Value differs(Bound& b) { return !equal(b.in, b.self, b[0]); }

constexpr Builtin kTests[] = {
    {"defined", "", [](Bound& b) { return Value(!b.self.is_undefined()); }},
    {"undefined", "", [](Bound& b) { return Value(b.self.is_undefined()); }},
    {"none", "", [](Bound& b) { return Value(b.self.is_none()); }},
    {"boolean", "", [](Bound& b) { return Value(b.self.get<bool>() != nullptr); }},
    {"true", "", [](Bound& b) { return Value(b.self.get<bool>() && b.self.truth()); }},
    {"false", "", [](Bound& b) { return Value(b.self.get<bool>() && !b.self.truth()); }},
    {"integer", "", [](Bound& b) { return Value(b.self.get<int64_t>() != nullptr); }},
    {"float", "", [](Bound& b) { return Value(b.self.get<double>() != nullptr); }},
    {"number", "", [](Bound& b) { return Value(b.self.number().has_value()); }},
    {"string", "", [](Bound& b) { return Value(b.self.text() != nullptr); }},
    {"mapping", "", [](Bound& b) { return Value(b.self.dict() != nullptr); }},
    {"sequence", "", sequence},
    {"iterable", "", iterable},
    {"callable", "", [](Bound& b) { return Value(b.self.object() && b.self.object()->callable()); }},
    {"odd", "", [](Bound& b) { return Value(remainder(b, 2) == 1); }},
    {"even", "", [](Bound& b) { return Value(remainder(b, 2) == 0); }},
    {"divisibleby", "num", [](Bound& b) { return Value(!modulo(b.in, b.self, b[0]).truth()); }},
    {"lower", "", cased<is_lower, is_upper>},
    {"upper", "", cased<is_upper, is_lower>},
    {"sameas", "other", same},
    {"in", "seq", [](Bound& b) { return Value(contains(b.in, b.self, b[0])); }},
    {"filter", "", [](Bound& b) { return Value(b.self.text() && find_filter(b.self.text()->bytes())); }},
    {"test", "", [](Bound& b) { return Value(b.self.text() && find_test(b.self.text()->bytes())); }},
    {"eq", "other", equals},
    {"equalto", "other", equals},
    {"==", "other", equals},
    {"ne", "other", differs},
    {"!=", "other", differs},
    {"lt", "other", below},
    {"lessthan", "other", below},
    {"<", "other", below},
    {"gt", "other", above},
    {"greaterthan", "other", above},
    {">", "other", above},
    {"le", "other", at_most},
    {"<=", "other", at_most},
    {"ge", "other", at_least},
    {">=", "other", at_least},
};

}  // namespace

std::span<const Builtin> test_table() { return kTests; }

}  // namespace juno::tokenizer::jinja
