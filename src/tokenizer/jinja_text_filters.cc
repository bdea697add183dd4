// SPDX-License-Identifier: Apache-2.0
// Filters that give text or a number.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_operators.h"
#include "tokenizer/jinja_strings.h"

namespace juno::tokenizer::jinja {

namespace {

Text self(Bound& b) { return to_text(b.in, b.self); }

template <Text (*change)(const Text&)>
Value changed(Bound& b) {
  return b.in.text(change(self(b)));
}

Value default_filter(Bound& b) {
  bool replaced = b.self.is_undefined() || (b.flag(1, false) && !b.self.truth());
  if (!replaced) return b.self;
  return b.has(0) ? b[0] : b.in.text("");
}

Value replace_filter(Bound& b) {
  return b.in.text(replace(b.in, self(b), to_text(b.in, b[0]), to_text(b.in, b[1]), b.integer(2, -1)));
}

Value escape(Bound& b) {
  struct Entity {
    const char *from, *to;
  };
  Text out = self(b);
  for (Entity e : {Entity{"&", "&amp;"}, {">", "&gt;"}, {"<", "&lt;"}, {"'", "&#39;"}, {"\"", "&#34;"}}) {
    // A user's character stays a user's when it is spelled out: replace() would make it the template's.
    Text spelled;
    const std::string& s = out.bytes();
    size_t from = 0;
    for (size_t at = s.find(e.from); at != std::string::npos; at = s.find(e.from, from)) {
      b.in.room(spelled.size() + s.size());
      spelled.append(out, from, at);
      spelled.append(e.to, out.trusted_at(at));
      from = at + 1;
    }
    spelled.append(out, from, out.size());
    out = std::move(spelled);
  }
  return b.in.text(std::move(out));
}

// tojson(ensure_ascii, indent, separators, sort_keys), as transformers defines it.
Value tojson(Bound& b) {
  JsonStyle style;
  style.ascii = b.flag(0, false);
  style.sort_keys = b.flag(3, false);
  if (b.has(1) && b[1].text()) {
    style.indent = *b[1].text();
  } else if (b.has(1) && !b[1].is_none()) {
    int64_t width = std::max<int64_t>(b.integer(1, 0), 0);
    b.in.room(static_cast<size_t>(width));
    style.indent = Text(std::string(static_cast<size_t>(width), ' '));
  }
  style.item_separator = Text(style.indent ? "," : ", ");
  style.key_separator = Text(": ");
  if (b.has(2) && !b[2].is_none()) {
    std::vector<Value> two = iterate(b.in, b[2]);
    if (two.size() != 2 || !two[0].text() || !two[1].text()) b.in.fail("tojson: separators are two strs");
    style.item_separator = *two[0].text();
    style.key_separator = *two[1].text();
  }
  return b.in.text(to_json(b.in, b.self, style));
}

Value indent(Bound& b) {
  Text by;
  if (b.has(0) && b[0].text()) {
    by = *b[0].text();
  } else {
    by = pad(b.in, Text(), b.integer(0, 4), Side::kRight, Text(" "));
  }
  bool first = b.flag(1, false), blank = b.flag(2, false);
  Text whole = self(b);
  whole.append("\n");  // as jinja does: the last line keeps its line end
  std::vector<Text> lines = split_lines(whole, false);
  Text out;
  for (size_t i = 0; i < lines.size(); ++i) {
    b.in.room(out.size() + by.size() + lines[i].size());
    if (i) out.append("\n");
    if (i ? blank || !lines[i].empty() : first) out.append(by);
    out.append(lines[i]);
  }
  return b.in.text(std::move(out));
}

Value truncate(Bound& b) {
  Text s = self(b), end = b.has(2) ? b.text(2) : Text("...");
  int64_t most = b.integer(0, 255), leeway = b.integer(3, 5);
  std::vector<size_t> at = char_offsets(s.bytes());
  int64_t end_size = static_cast<int64_t>(char_count(end.bytes()));
  if (most < end_size || leeway < 0)
    b.in.fail("truncate: the length is shorter than the end, or the leeway negative");
  if (static_cast<int64_t>(at.size()) - 1 <= most + leeway) return b.in.text(std::move(s));
  Text out = s.cut(0, at[static_cast<size_t>(most - end_size)]);
  if (!b.flag(1, false)) {
    size_t space = out.bytes().rfind(' ');
    if (space != std::string::npos) out = out.cut(0, space);
  }
  out.append(end);
  return b.in.text(std::move(out));
}

Value wordcount(Bound& b) {
  int64_t n = 0;
  bool inside = false;
  Text s = self(b);
  for (size_t at = 0, size; at < s.size(); at += size) {
    size = char_bytes(s.bytes(), at);
    uint32_t code = code_point(std::string_view(s.bytes()).substr(at, size));
    bool word = is_alpha(code) || (code >= '0' && code <= '9') || code == '_';
    n += word && !inside;
    inside = word;
  }
  return n;
}

Value center(Bound& b) { return b.in.text(pad(b.in, self(b), b.integer(0, 80), Side::kBoth, Text(" "))); }

Value trim(Bound& b) { return b.in.text(strip(self(b), Side::kBoth, b.text_or_none(0))); }

// ---- numbers

// The text without white space around and single underscores between digits.
std::string number_text(const Text& t) {
  auto kept = strip_range(t.bytes(), Side::kBoth, nullptr);
  std::string s = t.bytes().substr(kept.begin, kept.end - kept.begin), out;
  for (size_t i = 0; i < s.size(); ++i) {
    bool between = i > 0 && i + 1 < s.size() && std::isdigit(static_cast<unsigned char>(s[i - 1])) &&
                   std::isdigit(static_cast<unsigned char>(s[i + 1]));
    if (s[i] != '_' || !between) out += s[i];
  }
  if (out.size() > 1 && out[0] == '+' && out[1] != '-') out.erase(0, 1);
  return out;
}

std::optional<double> read_float(const Text& t) {
  std::string s = number_text(t);
  double d = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), d);
  if (end != s.data() + s.size() || s.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::strtod(s.c_str(), nullptr);
  return error == std::errc() ? std::optional<double>(d) : std::nullopt;
}

std::optional<int64_t> read_int(Bound& b, const Text& t, int64_t base) {
  std::string s = number_text(t);
  bool negative = !s.empty() && s[0] == '-';
  std::string_view digits = std::string_view(s).substr(negative);
  if (digits.size() > 2 && digits[0] == '0') {
    char mark = static_cast<char>(digits[1] | 0x20);
    if ((base == 16 && mark == 'x') || (base == 8 && mark == 'o') || (base == 2 && mark == 'b'))
      digits.remove_prefix(2);
  }
  if (base < 2 || base > 36) b.in.fail("int: the base is from 2 to 36");
  int64_t value = 0;
  if (digits.empty() || digits[0] == '-') return std::nullopt;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (end != digits.data() + digits.size()) return std::nullopt;
  if (error != std::errc()) b.in.fail("a number does not fit into 64 bits");
  return negative ? -value : value;
}

Value int_filter(Bound& b) {
  if (auto* u = b.self.get<Undefined>()) b.in.fail("{}", *u->why);
  Value otherwise = b.has(0) ? b[0] : Value(int64_t{0});
  std::optional<double> d = b.self.number();
  if (b.self.integer()) return *b.self.integer();
  if (b.self.text()) {
    if (auto i = read_int(b, *b.self.text(), b.integer(1, 10))) return *i;
    d = read_float(*b.self.text());
  }
  if (!d || !std::isfinite(*d)) return otherwise;
  if (std::fabs(*d) >= 9.2e18) b.in.fail("a number does not fit into 64 bits");
  return static_cast<int64_t>(*d);
}

Value float_filter(Bound& b) {
  if (auto* u = b.self.get<Undefined>()) b.in.fail("{}", *u->why);
  std::optional<double> d = b.self.text() ? read_float(*b.self.text()) : b.self.number();
  if (d) return *d;
  return b.has(0) ? b[0] : Value(0.0);
}

Value abs_filter(Bound& b) {
  if (!b.self.number()) b.in.fail("abs needs a number, not a {}", type_name(b.self));
  return *b.self.number() < 0 ? negate(b.in, b.self) : plus(b.in, b.self);
}

Value round_filter(Bound& b) {
  if (!b.self.number()) b.in.fail("round needs a number, not a {}", type_name(b.self));
  int64_t precision = b.integer(0, 0);
  std::string method = b.has(1) ? b.text(1).bytes() : "common";
  if (std::abs(precision) > 300) b.in.fail("round: the precision is from -300 to 300");
  if (method == "common" && b.self.integer() && precision >= 0) return *b.self.integer();
  double scale = std::pow(10.0, static_cast<double>(precision)), x = *b.self.number();
  if (method == "ceil") return std::ceil(x * scale) / scale;
  if (method == "floor") return std::floor(x * scale) / scale;
  if (method != "common") b.in.fail("round: the method is common, ceil or floor");
  if (!std::isfinite(x)) return x;
  // The decimal digits decide, as Python rounds: half to even on the exact value.
  if (precision >= 0) return std::strtod(fmt::format("{:.{}f}", x, precision).c_str(), nullptr);
  double rounded = std::nearbyint(x * scale) / scale;
  return b.self.integer() ? Value(static_cast<int64_t>(rounded)) : Value(rounded);
}

Value string_filter(Bound& b) { return b.self.text() ? b.self : b.in.text(self(b)); }

constexpr Builtin kFilters[] = {
    {"default", "default_value? boolean?", default_filter},
    {"d", "default_value? boolean?", default_filter},
    {"string", "", string_filter},
    {"safe", "", string_filter},
    {"escape", "", escape},
    {"e", "", escape},
    {"forceescape", "", escape},
    {"upper", "", changed<upper>},
    {"lower", "", changed<lower>},
    {"capitalize", "", changed<capitalize>},
    {"title", "", changed<filter_title>},
    {"trim", "chars?", trim},
    {"replace", "old new count?", replace_filter},
    {"indent", "width? first? blank?", indent},
    {"center", "width?", center},
    {"truncate", "length? killwords? end? leeway?", truncate},
    {"wordcount", "", wordcount},
    {"format", "*", [](Bound& b) { return percent_format(b.in, self(b), b.all); }},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", tojson},
    {"int", "default? base?", int_filter},
    {"float", "default?", float_filter},
    {"abs", "", abs_filter},
    {"round", "precision? method?", round_filter},
};

}  // namespace

std::span<const Builtin> text_filters() { return kFilters; }

}  // namespace juno::tokenizer::jinja
