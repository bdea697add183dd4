// SPDX-License-Identifier: Apache-2.0
// The methods of str, dict and list. Those that change a value are refused as in jinja's sandbox, but for
// append.
#include <algorithm>

#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_operators.h"
#include "tokenizer/jinja_strings.h"

namespace juno::tokenizer::jinja {

namespace {

const Text& self(Bound& b) { return *b.self.text(); }

Value text_list(Bound& b, std::vector<Text> parts, ListKind kind = ListKind::kList) {
  List* out = b.in.new_list(kind);
  for (Text& t : parts) b.in.push(*out, b.in.text(std::move(t)));
  return out;
}

template <Side side>
Value strip_method(Bound& b) {
  return b.in.text(strip(self(b), side, b.text_or_none(0)));
}

template <Text (*change)(const Text&)>
Value change_method(Bound& b) {
  return b.in.text(change(self(b)));
}

template <std::vector<Text> (*splitter)(Interpreter&, const Text&, const Text*, int64_t)>
Value split_method(Bound& b) {
  return text_list(b, splitter(b.in, self(b), b.text_or_none(0), b.integer(1, -1)));
}

// Whether the text starts or ends with the argument, or one of a tuple.
template <bool end>
Value affix_method(Bound& b) {
  auto matches = [&](const Value& v) {
    if (!v.text())
      b.in.fail("{}swith() needs a str or a tuple of them, not a {}", end ? "end" : "start", type_name(v));
    const std::string &s = self(b).bytes(), &affix = v.text()->bytes();
    return s.size() >= affix.size() && s.compare(end ? s.size() - affix.size() : 0, affix.size(), affix) == 0;
  };
  if (const List* l = b[0].list(); l && l->kind == ListKind::kTuple) {
    return std::any_of(l->items.begin(), l->items.end(), matches);
  }
  return matches(b[0]);
}

// The character index of the first or last match, -1 without one.
int64_t find_index(Bound& b, bool right) {
  const std::string& s = self(b).bytes();
  size_t found = right ? s.rfind(b.text(0).bytes()) : s.find(b.text(0).bytes());
  b.in.work(s.size());
  if (found == std::string::npos) return -1;
  return static_cast<int64_t>(char_count(std::string_view(s).substr(0, found)));
}

template <bool right>
Value find_method_(Bound& b) {
  return find_index(b, right);
}

template <bool right>
Value index_method(Bound& b) {
  int64_t found = find_index(b, right);
  if (found < 0) b.in.fail("the substring is not found");
  return found;
}

Value count_text(Bound& b) {
  const std::string &s = self(b).bytes(), &what = b.text(0).bytes();
  b.in.work(s.size());
  if (what.empty()) return static_cast<int64_t>(char_count(s)) + 1;
  int64_t n = 0;
  for (size_t at = s.find(what); at != std::string::npos; at = s.find(what, at + what.size())) ++n;
  return n;
}

Value join_method(Bound& b) {
  std::vector<Text> parts;
  for (const Value& v : iterate(b.in, b[0])) {
    if (!v.text()) b.in.fail("join() needs strs, not a {}", type_name(v));
    parts.push_back(*v.text());
  }
  return b.in.text(join(b.in, self(b), parts));
}

template <Side side>
Value pad_method(Bound& b) {
  return b.in.text(pad(b.in, self(b), b.integer(0, 0), side, b.has(1) ? b.text(1) : Text(" ")));
}

Value zfill(Bound& b) {
  const std::string& s = self(b).bytes();
  size_t sign = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
  Text out = self(b).cut(0, sign);
  out.append(pad(b.in, self(b).cut(sign, s.size()), b.integer(0, 0) - static_cast<int64_t>(sign),
                 Side::kRight, Text("0")));
  return b.in.text(std::move(out));
}

template <bool right>
Value partition(Bound& b) {
  const std::string &s = self(b).bytes(), &what = b.text(0).bytes();
  if (what.empty()) b.in.fail("partition() needs a separator that is not empty");
  size_t at = right ? s.rfind(what) : s.find(what);
  std::vector<Text> parts{self(b), Text(), Text()};
  if (at == std::string::npos && right) std::swap(parts[0], parts[2]);
  if (at != std::string::npos)
    parts = {self(b).cut(0, at), self(b).cut(at, at + what.size()), self(b).cut(at + what.size(), s.size())};
  return text_list(b, std::move(parts), ListKind::kTuple);
}

template <bool end>
Value remove_affix(Bound& b) {
  bool has = affix_method<end>(b).truth();
  size_t n = has ? b.text(0).size() : 0, size = self(b).size();
  return b.in.text(end ? self(b).cut(0, size - n) : self(b).cut(n, size));
}

// Not empty, and all characters of the kind.
template <bool (*kind)(uint32_t)>
Value all_are(Bound& b) {
  const std::string& s = self(b).bytes();
  for (size_t at = 0, n; at < s.size(); at += n) {
    n = char_bytes(s, at);
    if (!kind(code_point(std::string_view(s).substr(at, n)))) return false;
  }
  return !s.empty();
}

bool is_decimal(uint32_t code) { return code >= '0' && code <= '9'; }
bool is_alnum(uint32_t code) { return is_decimal(code) || is_alpha(code); }

template <const char* test>
Value by_test(Bound& b) {
  return find_test(test)->run(b);
}
constexpr char kLowerTest[] = "lower", kUpperTest[] = "upper";

Value refuse(Bound& b) { b.in.fail("a template may not change a {}", type_name(b.self)); }

constexpr Builtin kTextMethods[] = {
    {"strip", "chars?", strip_method<Side::kBoth>},
    {"lstrip", "chars?", strip_method<Side::kLeft>},
    {"rstrip", "chars?", strip_method<Side::kRight>},
    {"split", "sep? maxsplit?", split_method<split>},
    {"rsplit", "sep? maxsplit?", split_method<split_right>},
    {"splitlines", "keepends?",
     [](Bound& b) { return text_list(b, split_lines(self(b), b.flag(0, false))); }},
    {"startswith", "prefix", affix_method<false>},
    {"endswith", "suffix", affix_method<true>},
    {"removeprefix", "prefix", remove_affix<false>},
    {"removesuffix", "suffix", remove_affix<true>},
    {"upper", "", change_method<upper>},
    {"lower", "", change_method<lower>},
    {"casefold", "", change_method<lower>},
    {"title", "", change_method<title>},
    {"capitalize", "", change_method<capitalize>},
    {"replace", "old new count?",
     [](Bound& b) { return b.in.text(replace(b.in, self(b), b.text(0), b.text(1), b.integer(2, -1))); }},
    {"find", "sub", find_method_<false>},
    {"rfind", "sub", find_method_<true>},
    {"index", "sub", index_method<false>},
    {"rindex", "sub", index_method<true>},
    {"count", "sub", count_text},
    {"join", "iterable", join_method},
    {"format", "*", [](Bound& b) { return b.in.text(str_format(b.in, self(b), b.all)); }},
    {"center", "width fillchar?", pad_method<Side::kBoth>},
    {"ljust", "width fillchar?", pad_method<Side::kLeft>},
    {"rjust", "width fillchar?", pad_method<Side::kRight>},
    {"zfill", "width", zfill},
    {"partition", "sep", partition<false>},
    {"rpartition", "sep", partition<true>},
    {"isspace", "", all_are<is_space>},
    {"isdigit", "", all_are<is_decimal>},
    {"isdecimal", "", all_are<is_decimal>},
    {"isnumeric", "", all_are<is_decimal>},
    {"isalpha", "", all_are<is_alpha>},
    {"isalnum", "", all_are<is_alnum>},
    {"islower", "", by_test<kLowerTest>},
    {"isupper", "", by_test<kUpperTest>},
};

Value get(Bound& b) {
  const Value* found = b.self.dict()->find(b[0]);
  return found ? *found : b.has(1) ? b[1] : Value();
}

// A view of a dictionary: pick(item) of each, labelled as Python prints it.
template <class F>
Value view(Bound& b, std::string_view label, F&& pick) {
  List* out = b.in.new_list(ListKind::kView);
  out->label = label;
  for (const Dict::Item& item : b.self.dict()->items()) b.in.push(*out, pick(item));
  return out;
}

Value items(Bound& b) {
  return view(b, "dict_items", [&](const Dict::Item& i) -> Value {
    return b.in.new_list(ListKind::kTuple, {i.first, i.second});
  });
}

Value copy_dict(Bound& b) {
  Dict* out = b.in.new_dict();
  for (const auto& [key, v] : b.self.dict()->items()) b.in.set(*out, key, v);
  return out;
}

constexpr Builtin kDictMethods[] = {
    {"get", "key default?", get},
    {"items", "", items},
    {"keys", "", [](Bound& b) { return view(b, "dict_keys", [](const Dict::Item& i) { return i.first; }); }},
    {"values", "",
     [](Bound& b) { return view(b, "dict_values", [](const Dict::Item& i) { return i.second; }); }},
    {"copy", "", copy_dict},
    {"update", "*", refuse},
    {"pop", "*", refuse},
    {"popitem", "*", refuse},
    {"setdefault", "*", refuse},
    {"clear", "*", refuse},
};

Value append(Bound& b) {
  if (b.self.list()->kind != ListKind::kList) b.in.fail("a tuple has no append()");
  b.in.push(*b.self.list(), b[0]);
  return Value();
}

Value pop(Bound& b) {
  auto& items = b.self.list()->items;
  int64_t count = static_cast<int64_t>(items.size()), i = b.integer(0, -1);
  if (i < 0) i += count;
  if (b.self.list()->kind != ListKind::kList || i < 0 || i >= count)
    b.in.fail("pop() needs a list and an index inside it");
  b.in.spend(count / 8);
  Value out = items[static_cast<size_t>(i)];
  items.erase(items.begin() + i);
  return out;
}

Value count_items(Bound& b) {
  int64_t n = 0;
  for (const Value& v : b.self.list()->items) n += equal(b.in, v, b[0]);
  return n;
}

Value index_item(Bound& b) {
  const auto& items = b.self.list()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(b.in, items[i], b[0])) return static_cast<int64_t>(i);
  }
  b.in.fail("the value is not in the list");
}

constexpr Builtin kListMethods[] = {
    {"append", "object", append},
    {"count", "value", count_items},
    {"index", "value", index_item},
    {"copy", "", [](Bound& b) { return Value(b.in.new_list(b.self.list()->kind, b.self.list()->items)); }},
    {"extend", "*", refuse},
    {"insert", "*", refuse},
    {"pop", "index?", pop},
    {"remove", "*", refuse},
    {"reverse", "*", refuse},
    {"sort", "*", refuse},
    {"clear", "*", refuse},
};

}  // namespace

std::span<const Builtin> text_methods() { return kTextMethods; }
std::span<const Builtin> dict_methods() { return kDictMethods; }
std::span<const Builtin> list_methods() { return kListMethods; }

}  // namespace juno::tokenizer::jinja
