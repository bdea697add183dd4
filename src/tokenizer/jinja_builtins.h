// SPDX-License-Identifier: Apache-2.0
// What templates find ready made: filters, tests, methods and functions, each a line in a table.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/jinja_interpreter.h"

namespace juno::tokenizer::jinja {

// Arguments matched with a builtin's parameters.
struct Bound {
  Interpreter& in;
  const Value& self;                // what stands before | is or .
  std::vector<const Value*> slots;  // null where not given
  Args& all;                        // for "*"

  bool has(size_t i) const { return slots[i] != nullptr; }
  const Value& operator[](size_t i) const { return *slots[i]; }
  bool flag(size_t i, bool otherwise) const { return has(i) ? slots[i]->truth() : otherwise; }
  int64_t integer(size_t i, int64_t otherwise) const;  // none counts as not given
  const Text& text(size_t i) const;
  const Text* text_or_none(size_t i) const;
};

// parameters: names with blanks between, "?" after an optional one; "*" alone takes everything as it comes.
struct Builtin {
  std::string_view name, parameters;
  Value (*run)(Bound&);
};

Value call_builtin(Interpreter& in, const Builtin& builtin, const Value& self, Args& args);

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_function(std::string_view name);
// The method of that value, null where its type has none of the name.
const Builtin* find_method(const Value& receiver, std::string_view name);
// Whether any type has a method of the name.
bool is_method_name(std::string_view name);
void define_functions(Interpreter& in);

// The tables, one a file.
std::span<const Builtin> text_filters();
std::span<const Builtin> list_filters();
std::span<const Builtin> test_table();
std::span<const Builtin> function_table();
std::span<const Builtin> text_methods();
std::span<const Builtin> dict_methods();
std::span<const Builtin> list_methods();

}  // namespace juno::tokenizer::jinja
