// SPDX-License-Identifier: Apache-2.0
// Attributes, subscripts, slices, iteration and calls.
#include <algorithm>

#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_objects.h"
#include "tokenizer/jinja_operators.h"

namespace juno::tokenizer::jinja {

namespace {

// How jinja's messages name the owner of an attribute.
std::string owner(const Value& v) {
  if (v.is_none()) return "'None'";
  if (v.object()) return "'" + v.object()->describe() + "'";
  return "'" + std::string(type_name(v)) + " object'";
}

std::optional<Value> method_or_attribute(Interpreter& in, const Value& v, std::string_view name) {
  if (Object* o = v.object()) return o->attribute(in, name);
  if (const Builtin* method = find_method(v, name)) {
    return static_cast<Object*>(in.make<BoundBuiltin>(*method, v));
  }
  return std::nullopt;
}

std::optional<Value> item(Interpreter& in, const Value& v, const Value& key) {
  if (Dict* d = v.dict()) {
    const Value* found = d->find(key);
    return found ? std::optional<Value>(*found) : std::nullopt;
  }
  bool indexed = v.list() && v.list()->kind <= ListKind::kRange;
  if (!key.integer() || (!v.text() && !indexed)) return std::nullopt;
  int64_t i = *key.integer();
  if (indexed) {
    const auto& items = v.list()->items;
    if (i < 0) i += static_cast<int64_t>(items.size());
    if (i < 0 || i >= static_cast<int64_t>(items.size())) return std::nullopt;
    return items[static_cast<size_t>(i)];
  }
  in.work(v.text()->size());
  auto at = char_offsets(v.text()->bytes());
  int64_t count = static_cast<int64_t>(at.size()) - 1;
  if (i < 0) i += count;
  if (i < 0 || i >= count) return std::nullopt;
  return in.text(v.text()->cut(at[static_cast<size_t>(i)], at[static_cast<size_t>(i) + 1]));
}

void refuse_undefined(Interpreter& in, const Value& v) {
  if (auto* u = v.get<Undefined>()) in.fail("{}", *u->why);
}

Value missing(Interpreter& in, const Value& v, std::string_view name) {
  if (!name.empty() && name[0] == '_')
    in.fail("the attribute '{}' of {} is not for templates", name, owner(v));
  return in.undefined(fmt::format("{} has no attribute '{}'", owner(v), name));
}

}  // namespace

Value get_attribute(Interpreter& in, const Value& v, std::string_view name) {
  refuse_undefined(in, v);
  if (auto found = method_or_attribute(in, v, name)) return *found;
  if (Dict* d = v.dict()) {
    if (const Value* found = d->find_text(name)) return *found;
  }
  return missing(in, v, name);
}

Value get_item(Interpreter& in, const Value& v, const Value& key) {
  refuse_undefined(in, v);
  if (auto found = item(in, v, key)) return *found;
  if (auto* name = key.text()) {
    if (auto found = method_or_attribute(in, v, name->bytes())) return *found;
    return missing(in, v, name->bytes());
  }
  return in.undefined(fmt::format("{} has no element {}", owner(v), to_repr(in, key).bytes()));
}

Value get_slice(Interpreter& in, const Value& v, const SliceBounds& bounds) {
  refuse_undefined(in, v);
  bool sliced = v.text() || (v.list() && v.list()->kind <= ListKind::kRange);
  if (!sliced) return in.undefined(fmt::format("{} has no slices", owner(v)));
  int64_t step = bounds.step.value_or(1);
  if (step == 0) in.fail("the step of a slice cannot be 0");
  std::vector<size_t> chars;
  if (v.text()) {
    in.work(v.text()->size());
    chars = char_offsets(v.text()->bytes());
  }
  int64_t count = static_cast<int64_t>(v.text() ? chars.size() - 1 : v.list()->items.size());
  auto clamp = [&](std::optional<int64_t> bound, int64_t otherwise) {
    if (!bound) return otherwise;
    int64_t i = *bound < 0 ? *bound + count : *bound;
    return step > 0 ? std::clamp<int64_t>(i, 0, count) : std::clamp<int64_t>(i, -1, count - 1);
  };
  int64_t start = clamp(bounds.start, step > 0 ? 0 : count - 1),
          stop = clamp(bounds.stop, step > 0 ? count : -1);
  Text text;
  std::vector<Value> items;
  // A step beyond the ends takes one item; it must not overflow.
  step = std::clamp<int64_t>(step, -count - 1, count + 1);
  if (v.text() && step == 1) return in.text(start < stop ? v.text()->cut(chars[start], chars[stop]) : Text());
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (v.text()) {
      text.append(*v.text(), chars[i], chars[i + 1]);
    } else {
      items.push_back(v.list()->items[i]);
    }
  }
  if (v.text()) return in.text(std::move(text));
  return in.new_list(v.list()->kind == ListKind::kTuple ? ListKind::kTuple : ListKind::kList,
                     std::move(items));
}

std::vector<Value> iterate(Interpreter& in, const Value& v) {
  std::vector<Value> out;
  if (List* l = v.list()) {
    in.spend(static_cast<int64_t>(l->items.size() / 8));
    if (l->kind == ListKind::kGenerator) return std::exchange(l->items, {});
    return l->items;
  }
  if (Dict* d = v.dict()) {
    for (const auto& [key, value] : d->items()) out.push_back(key);
  } else if (auto* t = v.text()) {
    in.spend(static_cast<int64_t>(t->size() / 8));
    auto at = char_offsets(t->bytes());
    for (size_t i = 0; i + 1 < at.size(); ++i) out.push_back(in.text(t->cut(at[i], at[i + 1])));
  } else if (!v.is_undefined()) {
    in.fail("a {} has no items to walk", type_name(v));
  }
  return out;
}

std::optional<int64_t> length(Interpreter& in, const Value& v) {
  if (v.is_undefined()) return 0;
  if (auto* l = v.list(); l && l->kind != ListKind::kGenerator) return static_cast<int64_t>(l->items.size());
  if (auto* d = v.dict()) return static_cast<int64_t>(d->size());
  if (auto* t = v.text()) {
    in.work(t->size());
    return static_cast<int64_t>(char_count(t->bytes()));
  }
  return std::nullopt;
}

Value call_value(Interpreter& in, const Value& callee, Args& args) {
  refuse_undefined(in, callee);
  if (!callee.object()) in.fail("a {} cannot be called", type_name(callee));
  return callee.object()->call(in, args);
}

}  // namespace juno::tokenizer::jinja
