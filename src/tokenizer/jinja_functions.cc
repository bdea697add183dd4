// SPDX-License-Identifier: Apache-2.0
// The functions a template finds: range, namespace, dict, cycler, joiner, raise_exception, strftime_now.
#include <algorithm>

#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_objects.h"
#include "tokenizer/jinja_operators.h"

namespace juno::tokenizer::jinja {

namespace {

constexpr int64_t kMaxRange = 100'000;  // items, as jinja's sandbox has it

Value range(Bound& b) {
  int64_t start = b.has(1) ? b.integer(0, 0) : 0, stop = b.integer(b.has(1) ? 1 : 0, 0),
          step = b.integer(2, 1);
  if (step == 0) b.in.fail("the step of range() cannot be 0");
  // In 128 bits, so that no bound overflows.
  __int128 distance = step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  __int128 stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  __int128 count = distance > 0 ? (distance + stride - 1) / stride : 0;
  if (count > kMaxRange) b.in.fail("range() may not give more than {} items", kMaxRange);
  std::vector<Value> items;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) items.push_back(start + i * step);
  List* out = b.in.new_list(ListKind::kRange, std::move(items));
  out->label = b.has(2) && step != 1 ? fmt::format("range({}, {}, {})", start, stop, step)
                                     : fmt::format("range({}, {})", start, stop);
  return out;
}

// dict(pairs or a dictionary, name=value …)
Dict* make_dict(Bound& b) {
  Dict* out = b.in.new_dict();
  for (const Value& first : b.all.positional) {
    if (Dict* d = first.dict()) {
      for (const auto& [key, v] : std::vector<Dict::Item>(d->items())) b.in.set(*out, key, v);
      continue;
    }
    for (const Value& pair : iterate(b.in, first)) {
      std::vector<Value> two = iterate(b.in, pair);
      if (two.size() != 2) b.in.fail("dict() needs pairs");
      b.in.set(*out, two[0], two[1]);
    }
  }
  for (const auto& [name, v] : b.all.named) b.in.set(*out, b.in.text(name), v);
  return out;
}

Value make_namespace(Bound& b) { return static_cast<Object*>(b.in.make<Namespace>(make_dict(b))); }

Value cycler(Bound& b) {
  if (b.all.positional.empty()) b.in.fail("cycler() needs values");
  return static_cast<Object*>(b.in.make<Cycler>(b.all.positional));
}

Value joiner(Bound& b) { return static_cast<Object*>(b.in.make<Joiner>(b.has(0) ? b[0] : b.in.text(", "))); }

Value raise_exception(Bound& b) { raise_own(to_text(b.in, b[0]).bytes()); }

// ---- strftime

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

int hour12(const std::tm& t) { return t.tm_hour % 12 ? t.tm_hour % 12 : 12; }

struct NumberDirective {
  char letter;
  int width;
  int (*of)(const std::tm&);
};
constexpr NumberDirective kNumbers[] = {
    {'d', 2, [](const std::tm& t) { return t.tm_mday; }},
    {'m', 2, [](const std::tm& t) { return t.tm_mon + 1; }},
    {'Y', 1, [](const std::tm& t) { return t.tm_year + 1900; }},
    {'y', 2, [](const std::tm& t) { return (t.tm_year + 1900) % 100; }},
    {'H', 2, [](const std::tm& t) { return t.tm_hour; }},
    {'I', 2, hour12},
    {'M', 2, [](const std::tm& t) { return t.tm_min; }},
    {'S', 2, [](const std::tm& t) { return t.tm_sec; }},
    {'j', 3, [](const std::tm& t) { return t.tm_yday + 1; }},
    {'w', 1, [](const std::tm& t) { return t.tm_wday; }},
    {'u', 1, [](const std::tm& t) { return t.tm_wday ? t.tm_wday : 7; }},
};

struct TextDirective {
  char letter;
  std::string_view (*of)(const std::tm&);
};
constexpr TextDirective kTexts[] = {
    {'A', [](const std::tm& t) { return kDays[t.tm_wday]; }},
    {'a', [](const std::tm& t) { return kDays[t.tm_wday].substr(0, 3); }},
    {'B', [](const std::tm& t) { return kMonths[t.tm_mon]; }},
    {'b', [](const std::tm& t) { return kMonths[t.tm_mon].substr(0, 3); }},
    {'h', [](const std::tm& t) { return kMonths[t.tm_mon].substr(0, 3); }},
    {'p', [](const std::tm& t) { return std::string_view(t.tm_hour < 12 ? "AM" : "PM"); }},
    {'%', [](const std::tm&) { return std::string_view("%"); }},
    {'n', [](const std::tm&) { return std::string_view("\n"); }},
    {'t', [](const std::tm&) { return std::string_view("\t"); }},
    {'Z', [](const std::tm&) { return std::string_view(); }},  // Python's naive time has no zone
    {'z', [](const std::tm&) { return std::string_view(); }},
};

struct Shorthand {
  char letter;
  std::string_view expansion;
};
constexpr Shorthand kShorthands[] = {{'F', "%Y-%m-%d"},
                                     {'T', "%H:%M:%S"},
                                     {'X', "%H:%M:%S"},
                                     {'D', "%m/%d/%y"},
                                     {'x', "%m/%d/%y"},
                                     {'R', "%H:%M"},
                                     {'c', "%a %b %e %H:%M:%S %Y"}};

std::string strftime(Interpreter& in, std::string_view format, const std::tm& t);

// "%-d" takes the zeros away, "%e" pads with a blank.
std::string directive(Interpreter& in, char letter, bool bare, const std::tm& t) {
  if (letter == 'e') return fmt::format("{:{}}", t.tm_mday, bare ? 1 : 2);
  for (const auto& n : kNumbers) {
    if (n.letter == letter) return fmt::format("{:0{}}", n.of(t), bare ? 1 : n.width);
  }
  for (const auto& s : kTexts) {
    if (s.letter == letter) return std::string(s.of(t));
  }
  for (const auto& s : kShorthands) {
    if (s.letter == letter) return strftime(in, s.expansion, t);
  }
  in.fail("strftime_now() does not know %{}", letter);
}

std::string strftime(Interpreter& in, std::string_view format, const std::tm& t) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    bool bare = i + 2 < format.size() && format[i + 1] == '-';
    i += bare ? 2 : 1;
    if (i >= format.size()) in.fail("strftime_now()'s format ends in %");
    out += directive(in, format[i], bare, t);
  }
  return out;
}

Value strftime_now(Bound& b) {
  const std::tm& t = b.in.now();
  std::string out = strftime(b.in, b.text(0).bytes(), t);
  return b.in.text(Text(out, b.text(0).untrusted().empty()));
}

constexpr Builtin kFunctions[] = {
    {"range", "start stop? step?", range},
    {"namespace", "*", make_namespace},
    {"dict", "*", [](Bound& b) { return Value(make_dict(b)); }},
    {"cycler", "*", cycler},
    {"joiner", "sep?", joiner},
    {"raise_exception", "message", raise_exception},
    {"strftime_now", "format", strftime_now},
};

}  // namespace

std::span<const Builtin> function_table() { return kFunctions; }

}  // namespace juno::tokenizer::jinja
