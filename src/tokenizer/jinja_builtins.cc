// SPDX-License-Identifier: Apache-2.0
// Looking builtins up and matching their arguments.
#include "tokenizer/jinja_builtins.h"

#include <algorithm>

#include "tokenizer/jinja_objects.h"

namespace juno::tokenizer::jinja {

namespace {

const Builtin* find(std::span<const Builtin> table, std::string_view name) {
  for (const Builtin& b : table) {
    if (b.name == name) return &b;
  }
  return nullptr;
}

struct Parameter {
  std::string_view name;
  bool optional;
};

std::vector<Parameter> split_parameters(std::string_view all) {
  std::vector<Parameter> out;
  while (!all.empty() && all != "*") {
    size_t end = std::min(all.find(' '), all.size());
    std::string_view name = all.substr(0, end);
    bool optional = name.back() == '?';
    out.push_back({optional ? name.substr(0, name.size() - 1) : name, optional});
    all.remove_prefix(std::min(end + 1, all.size()));
  }
  return out;
}

}  // namespace

int64_t Bound::integer(size_t i, int64_t otherwise) const {
  if (!has(i) || slots[i]->is_none()) return otherwise;
  if (!slots[i]->integer()) in.fail("argument {} is a {}, not an integer", i + 1, type_name(*slots[i]));
  return *slots[i]->integer();
}

const Text& Bound::text(size_t i) const {
  if (!has(i) || !slots[i]->text()) in.fail("argument {} is not a str", i + 1);
  return *slots[i]->text();
}

const Text* Bound::text_or_none(size_t i) const {
  return !has(i) || slots[i]->is_none() ? nullptr : &text(i);
}

Value call_builtin(Interpreter& in, const Builtin& builtin, const Value& self, Args& args) {
  Bound bound{in, self, {}, args};
  if (builtin.parameters == "*") return builtin.run(bound);
  std::vector<Parameter> parameters = split_parameters(builtin.parameters);
  if (args.positional.size() > parameters.size()) {
    in.fail("{}() takes not more than {} arguments", builtin.name, parameters.size());
  }
  bound.slots.resize(parameters.size());
  for (size_t i = 0; i < args.positional.size(); ++i) bound.slots[i] = &args.positional[i];
  for (const auto& argument : args.named) {
    const std::string& name = argument.first;
    auto known = std::find_if(parameters.begin(), parameters.end(),
                              [&](const Parameter& p) { return p.name == name; });
    if (known == parameters.end()) in.fail("{}() takes no argument '{}'", builtin.name, name);
    const Value*& slot = bound.slots[static_cast<size_t>(known - parameters.begin())];
    if (slot) in.fail("{}() got two values for '{}'", builtin.name, name);
    slot = &argument.second;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!bound.slots[i] && !parameters[i].optional)
      in.fail("{}() needs '{}'", builtin.name, parameters[i].name);
  }
  return builtin.run(bound);
}

const Builtin* find_filter(std::string_view name) {
  const Builtin* found = find(text_filters(), name);
  return found ? found : find(list_filters(), name);
}

const Builtin* find_test(std::string_view name) { return find(test_table(), name); }
const Builtin* find_function(std::string_view name) { return find(function_table(), name); }

const Builtin* find_method(const Value& receiver, std::string_view name) {
  if (receiver.text()) return find(text_methods(), name);
  if (receiver.dict()) return find(dict_methods(), name);
  if (receiver.list() && receiver.list()->kind <= ListKind::kTuple) return find(list_methods(), name);
  return nullptr;
}

bool is_method_name(std::string_view name) {
  constexpr std::string_view kOfObjects[] = {"cycle", "changed", "next", "reset"};  // of loop and cycler
  return find(text_methods(), name) || find(dict_methods(), name) || find(list_methods(), name) ||
         std::find(std::begin(kOfObjects), std::end(kOfObjects), name) != std::end(kOfObjects);
}

void define_functions(Interpreter& in) {
  for (const Builtin& f : function_table()) {
    in.define(std::string(f.name), static_cast<Object*>(in.make<BoundBuiltin>(f, Value())));
  }
}

}  // namespace juno::tokenizer::jinja
