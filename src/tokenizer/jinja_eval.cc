// SPDX-License-Identifier: Apache-2.0
// How each node runs.
#include "tokenizer/jinja_ast.h"
#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_interpreter.h"
#include "tokenizer/jinja_objects.h"
#include "tokenizer/jinja_operators.h"

namespace juno::tokenizer::jinja {

// ---- expressions

Value Name::eval(Interpreter& in) const { return in.lookup(symbol); }

Value Sequence::eval(Interpreter& in) const {
  std::vector<Value> values;
  for (const auto& item : items) values.push_back(in.eval(*item));
  return in.new_list(kind, std::move(values));
}

Value DictLiteral::eval(Interpreter& in) const {
  Dict* out = in.new_dict();
  for (const auto& [key, value] : items) {
    Value k = in.eval(*key);
    in.set(*out, k, in.eval(*value));
  }
  return out;
}

Value Logic::eval(Interpreter& in) const {
  Value v;
  for (const auto& operand : operands) {
    v = in.eval(*operand);
    if (v.truth() == stop_at) break;
  }
  return v;
}

Value Unary::eval(Interpreter& in) const {
  Value v = in.eval(*operand);
  in.here(at);
  return op(in, v);
}

Value Arithmetic::eval(Interpreter& in) const {
  Value left = in.eval(*first);
  for (const auto& [op, operand] : rest) {
    Value right = in.eval(*operand);
    in.here(operand->at);
    left = op(in, left, right);
  }
  return left;
}

Value Compare::eval(Interpreter& in) const {
  Value left = in.eval(*first);
  for (const auto& [op, operand] : rest) {
    Value right = in.eval(*operand);
    in.here(operand->at);
    if (!op(in, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Concat::eval(Interpreter& in) const {
  Text out;
  for (const auto& part : parts) {
    Text piece = to_text(in, in.eval(*part));
    in.room(out.size() + piece.size());
    out.append(piece);
  }
  return in.text(std::move(out));
}

Value Conditional::eval(Interpreter& in) const {
  if (in.eval(*test).truth()) return in.eval(*yes);
  if (no) return in.eval(*no);
  return in.undefined("the inline 'if' has no 'else' and its condition is false");
}

Args Arguments::eval(Interpreter& in) const {
  Args out;
  for (const auto& e : positional) out.positional.push_back(in.eval(*e));
  for (const auto& [name, e] : named) out.named.emplace_back(name, in.eval(*e));
  if (more_positional) {
    for (Value& v : iterate(in, in.eval(*more_positional))) out.positional.push_back(std::move(v));
  }
  if (more_named) {
    Value more = in.eval(*more_named);
    if (!more.dict()) in.fail("what follows '**' is a {}, not a dictionary", type_name(more));
    for (const auto& [key, v] : more.dict()->items()) {
      if (!key.text()) in.fail("the name of an argument is a {}", type_name(key));
      out.named.emplace_back(key.text()->bytes(), v);
    }
  }
  return out;
}

Value Postfix::eval(Interpreter& in) const {
  Value v = in.eval(*first);
  for (const auto& suffix : suffixes) {
    in.spend(1);
    in.here(suffix->at);
    v = suffix->apply(in, v);
  }
  return v;
}

Value Attribute::apply(Interpreter& in, const Value& v) const { return get_attribute(in, v, *name); }

Value Subscript::apply(Interpreter& in, const Value& v) const {
  Value key = in.eval(*index);
  in.here(at);
  return get_item(in, v, key);
}

Value Slice::apply(Interpreter& in, const Value& v) const {
  auto bound = [&](const ExprPtr& e) -> std::optional<int64_t> {
    if (!e) return std::nullopt;
    Value i = in.eval(*e);
    if (i.is_none()) return std::nullopt;
    if (!i.integer()) in.fail("a slice needs integers, not a {}", type_name(i));
    return i.integer();
  };
  SliceBounds bounds{bound(start), bound(stop), bound(step)};
  in.here(at);
  return get_slice(in, v, bounds);
}

Value CallSuffix::apply(Interpreter& in, const Value& v) const {
  Args args = arguments.eval(in);
  in.here(at);
  return call_value(in, v, args);
}

Value FilterSuffix::apply(Interpreter& in, const Value& v) const {
  Args args = arguments.eval(in);
  in.here(at);
  return call_builtin(in, *filter, v, args);
}

Value TestSuffix::apply(Interpreter& in, const Value& v) const {
  Args args = arguments.eval(in);
  in.here(at);
  return call_builtin(in, *test, v, args).truth() != negated;
}

// ---- statements

Flow Data::run(Interpreter& in) const {
  in.emit(text);
  return Flow::kNext;
}

Flow Print::run(Interpreter& in) const {
  Value v = in.eval(*value);
  in.here(at);
  in.emit(v.text() ? *v.text() : to_text(in, v));
  return Flow::kNext;
}

Flow If::run(Interpreter& in) const {
  for (const auto& [test, body] : branches) {
    if (!test || in.eval(*test).truth()) return in.run(body);
  }
  return Flow::kNext;
}

void Target::assign(Interpreter& in, const Value& v) const {
  if (attribute) {
    Value space = in.lookup(name);
    if (!space.object() || !space.object()->set_attribute(in, *attribute, v)) {
      in.fail("cannot set an attribute of '{}': it is no namespace", *name);
    }
  } else if (name) {
    in.assign(name, v);
  } else {
    std::vector<Value> values = iterate(in, v);
    if (values.size() != parts.size()) in.fail("{} values for {} names", values.size(), parts.size());
    for (size_t i = 0; i < parts.size(); ++i) parts[i].assign(in, values[i]);
  }
}

// What the loop walks, after its filter.
std::vector<Value> For::chosen(Interpreter& in) const {
  Value whole = in.eval(*sequence);
  in.here(at);
  std::vector<Value> items = iterate(in, whole);
  if (!filter) return items;
  std::vector<Value> out;
  for (Value& item : items) {
    bool keep = in.in_scope(in.scope(), [&] {
      target.assign(in, item);
      return in.eval(*filter).truth();
    });
    if (keep) out.push_back(std::move(item));
  }
  return out;
}

Flow For::run(Interpreter& in) const {
  const List& list = *in.new_list(ListKind::kTuple, chosen(in));
  const std::vector<Value>& items = list.items;
  if (items.empty()) return in.in_scope(in.scope(), [&] { return in.run(otherwise); });
  auto* state = in.make<LoopObject>(list);
  for (state->index = 0; state->index < items.size(); ++state->index) {
    Flow flow = in.in_scope(in.scope(), [&] {
      in.assign(loop, static_cast<Object*>(state));
      target.assign(in, items[state->index]);
      return in.run(body);
    });
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

Flow Set::run(Interpreter& in) const {
  Value v = in.eval(*value);
  in.here(at);
  target.assign(in, v);
  return Flow::kNext;
}

namespace {

Value apply_all(Interpreter& in, const std::vector<std::unique_ptr<const Suffix>>& filters, Value v) {
  for (const auto& filter : filters) {
    in.here(filter->at);
    v = filter->apply(in, v);
  }
  return v;
}

Value captured(Interpreter& in, const Body& body) {
  return in.text(in.capture([&] { in.in_scope(in.scope(), [&] { return in.run(body); }); }));
}

}  // namespace

Flow SetBlock::run(Interpreter& in) const {
  target.assign(in, apply_all(in, filters, captured(in, body)));
  return Flow::kNext;
}

Flow FilterBlock::run(Interpreter& in) const {
  in.emit(to_text(in, apply_all(in, filters, captured(in, body))));
  return Flow::kNext;
}

Flow With::run(Interpreter& in) const {
  std::vector<Value> evaluated;
  for (const auto& [target, e] : values) evaluated.push_back(in.eval(*e));
  return in.in_scope(in.scope(), [&] {
    for (size_t i = 0; i < values.size(); ++i) values[i].first.assign(in, evaluated[i]);
    return in.run(body);
  });
}

Flow Macro::run(Interpreter& in) const {
  in.assign(name, static_cast<Object*>(in.make<MacroObject>(macro, in.scope())));
  return Flow::kNext;
}

Flow CallBlock::run(Interpreter& in) const {
  Value callee = in.eval(*function);
  Args args = arguments.eval(in);
  args.named.emplace_back("caller", static_cast<Object*>(in.make<MacroObject>(caller, in.scope())));
  in.here(at);
  in.emit(to_text(in, call_value(in, callee, args)));
  return Flow::kNext;
}

}  // namespace juno::tokenizer::jinja
