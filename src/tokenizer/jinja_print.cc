// SPDX-License-Identifier: Apache-2.0
// str(), repr() and json.dumps() of values, every character with its provenance.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "tokenizer/jinja_operators.h"

namespace juno::tokenizer::jinja {

// Shortest digits that read back as d, in Python's layout: 1.0, 1e-05, 1e+16, inf, nan.
std::string float_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  std::string s(buffer, end);
  int exponent = std::stoi(s.substr(s.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return s;  // to_chars writes two digits of exponent, as Python does
  end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::fixed).ptr;
  s.assign(buffer, end);
  return s.find('.') == std::string::npos ? s + ".0" : s;
}

namespace {

std::string hex(std::string_view prefix, uint32_t code, int digits) {
  return fmt::format("{}{:0{}x}", prefix, code, digits);
}

struct Letter {
  char from;
  std::string_view to;
};

std::string_view named_escape(std::span<const Letter> letters, char c) {
  for (const Letter& l : letters) {
    if (l.from == c) return l.to;
  }
  return {};
}

// Calls escape(character) for each character: what it returns stands in its place, unless it is empty.
template <class F>
void append_escaped(Interpreter& in, Text& out, const Text& t, F&& escape) {
  in.room(out.size() + t.size());
  const std::string& s = t.bytes();
  size_t plain = 0;
  for (size_t at = 0, n; at < s.size(); at += n) {
    n = char_bytes(s, at);
    std::string escaped = escape(std::string_view(s).substr(at, n));
    if (escaped.empty()) continue;
    out.append(t, plain, at);
    out.append(escaped, t.trusted_at(at));
    plain = at + n;
  }
  out.append(t, plain, s.size());
}

void append_repr(Interpreter& in, Text& out, const Value& v);

void repr_text(Interpreter& in, Text& out, const Text& t) {
  bool single = t.bytes().find('\'') != std::string::npos, twice = t.bytes().find('"') != std::string::npos;
  char quote = single && !twice ? '"' : '\'';
  out.append(std::string_view(&quote, 1));
  append_escaped(in, out, t, [&](std::string_view c) -> std::string {
    static constexpr Letter kLetters[] = {{'\\', "\\\\"}, {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}};
    if (c[0] == quote) return std::string("\\") + quote;
    if (auto e = named_escape(kLetters, c[0]); !e.empty()) return std::string(e);
    uint32_t code = code_point(c);
    if (is_printable(code)) return "";
    return code < 0x100 ? hex("\\x", code, 2) : code < 0x10000 ? hex("\\u", code, 4) : hex("\\U", code, 8);
  });
  out.append(std::string_view(&quote, 1));
}

void repr_list(Interpreter& in, Text& out, const List& l) {
  if (l.kind == ListKind::kGenerator) return out.append("<generator object>");
  if (l.kind == ListKind::kRange) return out.append(l.label);
  bool tuple = l.kind == ListKind::kTuple;
  if (l.kind == ListKind::kView) out.append(l.label + "(");
  out.append(tuple ? "(" : "[");
  for (size_t i = 0; i < l.items.size(); ++i) {
    if (i) out.append(", ");
    append_repr(in, out, l.items[i]);
  }
  out.append(tuple ? (l.items.size() == 1 ? ",)" : ")") : "]");
  if (l.kind == ListKind::kView) out.append(")");
}

void repr_dict(Interpreter& in, Text& out, const Dict& d) {
  out.append("{");
  bool first = true;
  for (const auto& [key, value] : d.items()) {
    if (!std::exchange(first, false)) out.append(", ");
    append_repr(in, out, key);
    out.append(": ");
    append_repr(in, out, value);
  }
  out.append("}");
}

void append_repr(Interpreter& in, Text& out, const Value& v) {
  Interpreter::Depth deeper(in);
  in.room(out.size());
  if (auto* t = v.text()) return repr_text(in, out, *t);
  if (auto* l = v.list()) return repr_list(in, out, *l);
  if (auto* d = v.dict()) return repr_dict(in, out, *d);
  if (v.is_undefined()) return out.append("Undefined");
  if (v.is_none()) return out.append("None");
  if (auto* b = v.get<bool>()) return out.append(*b ? "True" : "False");
  if (auto* i = v.get<int64_t>()) return out.append(std::to_string(*i));
  if (auto* f = v.get<double>()) return out.append(float_text(*f));
  out.append("<" + v.object()->describe() + ">");
}

class JsonWriter {
 public:
  JsonWriter(Interpreter& in, const JsonStyle& style) : in_(in), style_(style) {}
  Text take() { return std::move(out_); }

  void value(const Value& v) {
    Interpreter::Depth deeper(in_);
    in_.room(out_.size());
    if (auto* t = v.text()) {
      string(*t);
    } else if (List* l = v.list(); l && l->kind <= ListKind::kTuple) {
      block("[", "]", l->items.size(), [&](size_t i) { value(l->items[i]); });
    } else if (Dict* d = v.dict()) {
      dict(*d);
    } else {
      out_.append(scalar(v));
    }
  }

 private:
  std::string scalar(const Value& v) const {
    if (v.is_none()) return "null";
    if (auto* b = v.get<bool>()) return *b ? "true" : "false";
    if (auto* i = v.get<int64_t>()) return std::to_string(*i);
    if (auto* f = v.get<double>()) {
      return std::isnan(*f) ? "NaN" : std::isinf(*f) ? (*f > 0 ? "Infinity" : "-Infinity") : float_text(*f);
    }
    if (auto* u = v.get<Undefined>()) in_.fail("tojson: {}", *u->why);
    in_.fail("a {} has no JSON", type_name(v));
  }

  void string(const Text& t) {
    static constexpr Letter kLetters[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\r', "\\r"},
                                          {'\t', "\\t"}, {'\f', "\\f"},  {'\b', "\\b"}};
    out_.append("\"");
    append_escaped(in_, out_, t, [&](std::string_view c) -> std::string {
      if (auto e = named_escape(kLetters, c[0]); !e.empty()) return std::string(e);
      uint32_t code = code_point(c);
      if (code < 0x20) return hex("\\u", code, 4);
      if (!style_.ascii || code < 0x80) return "";
      if (code < 0x10000) return hex("\\u", code, 4);
      code -= 0x10000;
      return hex("\\u", 0xD800 + (code >> 10), 4) + hex("\\u", 0xDC00 + (code & 0x3FF), 4);
    });
    out_.append("\"");
  }

  template <class F>
  void block(std::string_view open, std::string_view close, size_t count, F&& item) {
    out_.append(open);
    ++level_;
    for (size_t i = 0; i < count; ++i) {
      if (i) out_.append(style_.item_separator);
      new_line();
      item(i);
    }
    --level_;
    if (count) new_line();
    out_.append(close);
  }

  void new_line() {
    if (!style_.indent) return;
    out_.append("\n");
    in_.room(out_.size() + level_ * style_.indent->size());
    for (size_t i = 0; i < level_; ++i) out_.append(*style_.indent);
  }

  void dict(const Dict& d) {
    std::vector<const Dict::Item*> items;
    for (const auto& item : d.items()) items.push_back(&item);
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(),
                       [&](auto* a, auto* b) { return less(in_, a->first, b->first); });
    }
    block("{", "}", items.size(), [&](size_t i) {
      const auto& [key, v] = *items[i];
      if (key.list()) in_.fail("a {} cannot be a key in JSON", type_name(key));
      string(key.text() ? *key.text() : Text(scalar(key)));
      out_.append(style_.key_separator);
      value(v);
    });
  }

  Interpreter& in_;
  const JsonStyle& style_;
  Text out_;
  size_t level_ = 0;
};

}  // namespace

Text to_text(Interpreter& in, const Value& v) {
  if (v.text()) return *v.text();
  if (v.is_undefined()) return Text();
  return to_repr(in, v);
}

Text to_repr(Interpreter& in, const Value& v) {
  Text out;
  append_repr(in, out, v);
  in.work(out.size());
  return out;
}

Text to_json(Interpreter& in, const Value& v, const JsonStyle& style) {
  JsonWriter writer(in, style);
  writer.value(v);
  return writer.take();
}

}  // namespace juno::tokenizer::jinja
