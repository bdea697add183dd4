// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja_objects.h"

#include "tokenizer/jinja_operators.h"

namespace juno::tokenizer::jinja {

// ---- loop

struct LoopFunctions {
  static LoopObject& loop(Bound& b) { return static_cast<LoopObject&>(*b.self.object()); }

  static Value cycle(Bound& b) {
    if (b.all.positional.empty()) b.in.fail("loop.cycle() needs values");
    return b.all.positional[loop(b).index % b.all.positional.size()];
  }

  // True where the arguments differ from those of the last call.
  static Value changed(Bound& b) {
    Value now = b.in.new_list(ListKind::kTuple, b.all.positional);
    auto& last = loop(b).last_change_;
    if (last && equal(b.in, *last, now)) return false;
    last = now;
    return true;
  }

  static std::optional<Value> number(const LoopObject& l, std::string_view name) {
    struct Number {
      std::string_view name;
      int64_t (*of)(int64_t index, int64_t count);
    };
    constexpr Number kNumbers[] = {
        {"index", [](int64_t i, int64_t) { return i + 1; }},
        {"index0", [](int64_t i, int64_t) { return i; }},
        {"revindex", [](int64_t i, int64_t n) { return n - i; }},
        {"revindex0", [](int64_t i, int64_t n) { return n - i - 1; }},
        {"length", [](int64_t, int64_t n) { return n; }},
        {"depth", [](int64_t, int64_t) { return int64_t{1}; }},
        {"depth0", [](int64_t, int64_t) { return int64_t{0}; }},
    };
    for (const Number& n : kNumbers) {
      if (n.name == name) return n.of(static_cast<int64_t>(l.index), static_cast<int64_t>(l.items_.size()));
    }
    return std::nullopt;
  }
};

std::string LoopObject::describe() const {
  return "LoopContext " + std::to_string(index + 1) + "/" + std::to_string(items_.size());
}

std::optional<Value> LoopObject::attribute(Interpreter& in, std::string_view name) {
  static constexpr Builtin kCycle{"cycle", "*", LoopFunctions::cycle},
      kChanged{"changed", "*", LoopFunctions::changed};
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 >= items_.size();
  if (name == "previtem") return index == 0 ? in.undefined("there is no previous item") : items_[index - 1];
  if (name == "nextitem")
    return index + 1 >= items_.size() ? in.undefined("there is no next item") : items_[index + 1];
  for (const Builtin* b : {&kCycle, &kChanged}) {
    if (b->name == name)
      return static_cast<Object*>(in.make<BoundBuiltin>(*b, Value(static_cast<Object*>(this))));
  }
  return LoopFunctions::number(*this, name);
}

Value LoopObject::call(Interpreter& in, Args&) { in.fail("recursive loops are not known"); }

// ---- macros

std::optional<Value> MacroObject::attribute(Interpreter& in, std::string_view name) {
  if (name == "name") return in.text(macro_.name);
  return std::nullopt;
}

// Puts the arguments into the current scope, which is the macro's.
void MacroObject::bind(Interpreter& in, Args& args) {
  size_t count = macro_.parameters.size(), plain = count - macro_.defaults.size();
  List* more = macro_.varargs ? in.new_list(ListKind::kTuple) : nullptr;
  Dict* named = macro_.kwargs ? in.new_dict() : nullptr;
  std::vector<bool> given(count);
  for (size_t i = 0; i < args.positional.size(); ++i) {
    if (i < count) {
      in.assign(macro_.parameters[i], args.positional[i]);
      given[i] = true;
    } else if (more) {
      in.push(*more, args.positional[i]);
    } else {
      in.fail("macro '{}' takes not more than {} arguments", macro_.name, count);
    }
  }
  bool caller_given = false;
  for (auto& [name, value] : args.named) {
    size_t i = 0;
    while (i < count && *macro_.parameters[i] != name) ++i;
    if (i < count) {
      if (given[i]) in.fail("macro '{}' got two values for '{}'", macro_.name, name);
      in.assign(macro_.parameters[i], value);
      given[i] = true;
    } else if (macro_.caller && name == "caller") {
      in.assign(macro_.caller, value);
      caller_given = true;
    } else if (named) {
      in.set(*named, in.text(name), value);
    } else {
      in.fail("macro '{}' takes no argument '{}'", macro_.name, name);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (given[i]) continue;
    Symbol name = macro_.parameters[i];
    in.assign(name, i >= plain ? in.eval(*macro_.defaults[i - plain])
                               : in.undefined("parameter '" + *name + "' was not provided"));
  }
  if (more) in.assign(macro_.varargs, more);
  if (named) in.assign(macro_.kwargs, named);
  if (macro_.caller && !caller_given) in.assign(macro_.caller, in.undefined("no caller is defined"));
}

Value MacroObject::call(Interpreter& in, Args& args) {
  return in.in_call([&] {
    return in.in_scope(scope_, [&] {
      bind(in, args);
      return in.text(in.capture([&] { in.run(macro_.body); }));
    });
  });
}

// ---- namespace

std::optional<Value> Namespace::attribute(Interpreter&, std::string_view name) {
  const Value* v = values_->find_text(name);
  return v ? std::optional<Value>(*v) : std::nullopt;
}

bool Namespace::set_attribute(Interpreter& in, std::string_view name, Value v) {
  in.set(*values_, in.text(name), std::move(v));
  return true;
}

Value Namespace::call(Interpreter& in, Args&) { in.fail("a namespace cannot be called"); }

// ---- cycler, joiner

Value Cycler::step() { return items_[at_++ % items_.size()]; }

std::optional<Value> Cycler::attribute(Interpreter& in, std::string_view name) {
  static constexpr Builtin kNext{"next", "",
                                 [](Bound& b) { return static_cast<Cycler&>(*b.self.object()).step(); }};
  static constexpr Builtin kReset{"reset", "", [](Bound& b) {
                                    static_cast<Cycler&>(*b.self.object()).reset();
                                    return Value();
                                  }};
  if (name == "current") return items_[at_ % items_.size()];
  for (const Builtin* b : {&kNext, &kReset}) {
    if (b->name == name)
      return static_cast<Object*>(in.make<BoundBuiltin>(*b, Value(static_cast<Object*>(this))));
  }
  return std::nullopt;
}

Value Cycler::call(Interpreter& in, Args&) { in.fail("a cycler cannot be called"); }

Value Joiner::call(Interpreter& in, Args&) {
  if (std::exchange(used_, true)) return separator_;
  return in.text("");
}

}  // namespace juno::tokenizer::jinja
