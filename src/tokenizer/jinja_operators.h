// SPDX-License-Identifier: Apache-2.0
// Python's operators on template values. Every error names what was wrong; none is a C++ surprise.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/jinja_interpreter.h"

namespace juno::tokenizer::jinja {

bool equal(Interpreter& in, const Value& a, const Value& b);
bool less(Interpreter& in, const Value& a, const Value& b);
bool contains(Interpreter& in, const Value& needle, const Value& container);

Value add(Interpreter& in, const Value& a, const Value& b);
Value subtract(Interpreter& in, const Value& a, const Value& b);
Value multiply(Interpreter& in, const Value& a, const Value& b);
Value divide(Interpreter& in, const Value& a, const Value& b);
Value floor_divide(Interpreter& in, const Value& a, const Value& b);
Value modulo(Interpreter& in, const Value& a, const Value& b);
Value power(Interpreter& in, const Value& a, const Value& b);
Value negate(Interpreter& in, const Value& v);
Value plus(Interpreter& in, const Value& v);

// v.name and v[key] as jinja looks them up: methods first for the dot, items first for the bracket.
Value get_attribute(Interpreter& in, const Value& v, std::string_view name);
Value get_item(Interpreter& in, const Value& v, const Value& key);
struct SliceBounds {
  std::optional<int64_t> start, stop, step;
};
Value get_slice(Interpreter& in, const Value& v, const SliceBounds& bounds);

// The items a loop over v walks: of a list, the keys of a dictionary, the characters of a text.
std::vector<Value> iterate(Interpreter& in, const Value& v);
// Nothing where v has no length.
std::optional<int64_t> length(Interpreter& in, const Value& v);
Value call_value(Interpreter& in, const Value& callee, Args& args);

// template % args: the directives s r d i x X f e g and %%.
Value percent_format(Interpreter& in, const Text& format, Args& args);

// str(v), repr(v) and json.dumps(v).
Text to_text(Interpreter& in, const Value& v);
Text to_repr(Interpreter& in, const Value& v);
std::string float_text(double d);
struct JsonStyle {
  std::optional<Text> indent;  // of one level; nothing: all in one line
  Text item_separator, key_separator;
  bool ascii = false, sort_keys = false;
};
Text to_json(Interpreter& in, const Value& v, const JsonStyle& style);

}  // namespace juno::tokenizer::jinja
