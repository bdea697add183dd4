// SPDX-License-Identifier: Apache-2.0
// Filters on lists and dictionaries.
#include <algorithm>
#include <charconv>
#include <functional>

#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_operators.h"
#include "tokenizer/jinja_strings.h"

namespace juno::tokenizer::jinja {

namespace {

// item.a.b.0 by a dotted path, or item[number]; `otherwise` in place of what is not there.
Value by_path(Interpreter& in, Value item, const Value& path, const Value* otherwise = nullptr) {
  auto step = [&](const Value& key) {
    item = get_item(in, item, key);
    if (item.is_undefined() && otherwise) item = *otherwise;
  };
  if (!path.text()) return step(path), item;
  const Text dot(".");
  for (const Text& part : split(in, *path.text(), &dot, -1)) {
    int64_t index = 0;
    const std::string& s = part.bytes();
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), index);
    bool number = !s.empty() && s[0] != '-' && error == std::errc() && end == s.data() + s.size();
    step(number ? Value(index) : in.text(part));
  }
  return item;
}

Value attribute_of(Bound& b, size_t slot, const Value& item) {
  return b.has(slot) && !b[slot].is_none() ? by_path(b.in, item, b[slot]) : item;
}

Value folded(Interpreter& in, const Value& v, bool case_sensitive) {
  return v.text() && !case_sensitive ? in.text(lower(*v.text())) : v;
}

struct Keyed {
  Value key, item;
};

// The items with their sort keys: parameters case_sensitive and attribute in these slots.
std::vector<Keyed> keyed(Bound& b, size_t case_slot, size_t attribute_slot) {
  std::vector<Keyed> out;
  for (const Value& item : iterate(b.in, b.self)) {
    out.push_back({folded(b.in, attribute_of(b, attribute_slot, item), b.flag(case_slot, false)), item});
  }
  return out;
}

void sort_keyed(Interpreter& in, std::vector<Keyed>& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& x, const Keyed& y) {
    in.spend(1);
    return reverse ? less(in, y.key, x.key) : less(in, x.key, y.key);
  });
}

Value values_of(Bound& b, std::vector<Keyed> items, ListKind kind = ListKind::kList) {
  std::vector<Value> out;
  for (Keyed& k : items) out.push_back(std::move(k.item));
  return b.in.new_list(kind, std::move(out));
}

Value sort(Bound& b) {
  std::vector<Keyed> items = keyed(b, 1, 2);
  sort_keyed(b.in, items, b.flag(0, false));
  return values_of(b, std::move(items));
}

Value dictsort(Bound& b) {
  if (!b.self.dict()) b.in.fail("dictsort needs a dictionary, not a {}", type_name(b.self));
  bool by_value = b.has(1) && b.text(1).bytes() == "value";
  if (b.has(1) && !by_value && b.text(1).bytes() != "key") b.in.fail("dictsort sorts by 'key' or 'value'");
  std::vector<Keyed> items;
  for (const auto& [key, v] : b.self.dict()->items()) {
    items.push_back(
        {folded(b.in, by_value ? v : key, b.flag(0, false)), b.in.new_list(ListKind::kTuple, {key, v})});
  }
  sort_keyed(b.in, items, b.flag(2, false));
  return values_of(b, std::move(items));
}

Value unique(Bound& b) {
  std::vector<Keyed> out;
  Dict& seen = *b.in.new_dict();
  for (Keyed& k : keyed(b, 0, 1)) {
    if (seen.find(k.key)) continue;
    b.in.set(seen, k.key, true);
    out.push_back(std::move(k));
  }
  return values_of(b, std::move(out), ListKind::kGenerator);
}

template <bool largest>
Value extreme(Bound& b) {
  std::vector<Keyed> items = keyed(b, 0, 1);
  if (items.empty()) return b.in.undefined("an empty sequence has no smallest or largest item");
  const Keyed* best = &items[0];
  for (const Keyed& k : items) {
    if (largest ? less(b.in, best->key, k.key) : less(b.in, k.key, best->key)) best = &k;
  }
  return best->item;
}

Value sum(Bound& b) {
  Value total = b.has(1) ? b[1] : Value(int64_t{0});
  for (const Value& item : iterate(b.in, b.self)) total = add(b.in, total, attribute_of(b, 0, item));
  return total;
}

Value join_filter(Bound& b) {
  std::vector<Text> parts;
  for (const Value& item : iterate(b.in, b.self)) parts.push_back(to_text(b.in, attribute_of(b, 1, item)));
  return b.in.text(join(b.in, b.has(0) ? to_text(b.in, b[0]) : Text(), parts));
}

Value first(Bound& b) {
  std::vector<Value> items = iterate(b.in, b.self);
  return items.empty() ? b.in.undefined("an empty sequence has no first item") : items.front();
}

Value last(Bound& b) {
  std::vector<Value> items = iterate(b.in, b.self);
  return items.empty() ? b.in.undefined("an empty sequence has no last item") : items.back();
}

Value length_filter(Bound& b) {
  auto n = length(b.in, b.self);
  if (!n) b.in.fail("a {} has no length", type_name(b.self));
  return *n;
}

Value list_filter(Bound& b) { return b.in.new_list(ListKind::kList, iterate(b.in, b.self)); }

Value reverse(Bound& b) {
  std::vector<Value> items = iterate(b.in, b.self);
  std::reverse(items.begin(), items.end());
  if (!b.self.text()) return b.in.new_list(ListKind::kGenerator, std::move(items));
  Text out;
  for (const Value& c : items) out.append(*c.text());
  return b.in.text(std::move(out));
}

Value items_filter(Bound& b) {
  List* out = b.in.new_list(ListKind::kGenerator);
  if (b.self.is_undefined()) return out;
  if (!b.self.dict()) b.in.fail("items needs a dictionary, not a {}", type_name(b.self));
  for (const auto& [key, v] : b.self.dict()->items())
    b.in.push(*out, b.in.new_list(ListKind::kTuple, {key, v}));
  return out;
}

Value batch(Bound& b) {
  int64_t count = b.integer(0, 0);
  if (count < 1 || count > 100'000) b.in.fail("batch: the size is from 1 to 100000");
  List *out = b.in.new_list(ListKind::kGenerator), *row = nullptr;
  for (const Value& item : iterate(b.in, b.self)) {
    if (!row || static_cast<int64_t>(row->items.size()) == count) {
      row = b.in.new_list();
      b.in.push(*out, row);
    }
    b.in.push(*row, item);
  }
  bool fills = b.has(1) && !b[1].is_none();
  while (row && fills && static_cast<int64_t>(row->items.size()) < count) b.in.push(*row, b[1]);
  return out;
}

Value slice(Bound& b) {
  int64_t count = b.integer(0, 0);
  if (count < 1 || count > 100'000) b.in.fail("slice: the number is from 1 to 100000");
  std::vector<Value> items = iterate(b.in, b.self);
  size_t each = items.size() / static_cast<size_t>(count), longer = items.size() % static_cast<size_t>(count),
         at = 0;
  List* out = b.in.new_list(ListKind::kGenerator);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    List* row = b.in.new_list();
    b.in.push(*out, row);
    for (size_t n = each + (i < longer ? 1 : 0); n > 0; --n) b.in.push(*row, items[at++]);
    if (i >= longer && b.has(1) && !b[1].is_none()) b.in.push(*row, b[1]);
  }
  return out;
}

// ---- filters that take the name of a filter or test

std::string take_name(Bound& b, size_t at) {
  if (b.all.positional.size() <= at || !b.all.positional[at].text())
    b.in.fail("the name of a filter or test is missing");
  return b.all.positional[at].text()->bytes();
}

Args rest(Bound& b, size_t from) {
  return {{b.all.positional.begin() + static_cast<std::ptrdiff_t>(std::min(from, b.all.positional.size())),
           b.all.positional.end()},
          b.all.named};
}

const Value* named(Bound& b, std::string_view name) {
  for (const auto& [known, v] : b.all.named) {
    if (known == name) return &v;
  }
  return nullptr;
}

Value map(Bound& b) {
  const Value *attribute = named(b, "attribute"), *otherwise = named(b, "default");
  const Builtin* filter = nullptr;
  if (!attribute) {
    std::string name = take_name(b, 0);
    filter = find_filter(name);
    if (!filter) b.in.fail("the filter '{}' is not known", name);
  }
  std::vector<Value> out;
  for (const Value& item : iterate(b.in, b.self)) {
    Value v;
    if (attribute) {
      v = by_path(b.in, item, *attribute, otherwise);
    } else {
      Args args = rest(b, 1);
      v = call_builtin(b.in, *filter, item, args);
    }
    out.push_back(std::move(v));
  }
  return b.in.new_list(ListKind::kGenerator, std::move(out));
}

// keep: the truth that an item needs to stay; by_attribute: the first argument says what of the item is
// tested.
template <bool keep, bool by_attribute>
Value choose(Bound& b) {
  const Builtin* test = nullptr;
  if (by_attribute && b.all.positional.empty()) b.in.fail("the name of an attribute is missing");
  if (b.all.positional.size() > by_attribute) {
    std::string name = take_name(b, by_attribute);
    test = find_test(name);
    if (!test) b.in.fail("the test '{}' is not known", name);
  }
  std::vector<Value> out;
  for (const Value& item : iterate(b.in, b.self)) {
    Value tested = by_attribute ? by_path(b.in, item, b.all.positional[0]) : item;
    Args args = rest(b, by_attribute + 1);
    bool truth = test ? call_builtin(b.in, *test, tested, args).truth() : tested.truth();
    if (truth == keep) out.push_back(item);
  }
  return b.in.new_list(ListKind::kGenerator, std::move(out));
}

Value attr(Bound& b) {
  std::string name = b.text(0).bytes();
  if (b.self.dict()) {  // jinja's attr sees methods, not items
    if (find_method(b.self, name)) return get_attribute(b.in, b.self, name);
    return b.in.undefined("'dict object' has no attribute '" + name + "'");
  }
  return get_attribute(b.in, b.self, name);
}

constexpr Builtin kFilters[] = {
    {"length", "", length_filter},
    {"count", "", length_filter},
    {"first", "", first},
    {"last", "", last},
    {"list", "", list_filter},
    {"join", "d? attribute?", join_filter},
    {"items", "", items_filter},
    {"dictsort", "case_sensitive? by? reverse?", dictsort},
    {"sort", "reverse? case_sensitive? attribute?", sort},
    {"unique", "case_sensitive? attribute?", unique},
    {"min", "case_sensitive? attribute?", extreme<false>},
    {"max", "case_sensitive? attribute?", extreme<true>},
    {"sum", "attribute? start?", sum},
    {"reverse", "", reverse},
    {"batch", "linecount fill_with?", batch},
    {"slice", "slices fill_with?", slice},
    {"map", "*", map},
    {"select", "*", choose<true, false>},
    {"reject", "*", choose<false, false>},
    {"selectattr", "*", choose<true, true>},
    {"rejectattr", "*", choose<false, true>},
    {"attr", "name", attr},
};

}  // namespace

std::span<const Builtin> list_filters() { return kFilters; }

}  // namespace juno::tokenizer::jinja
