// SPDX-License-Identifier: Apache-2.0
#include "grammar/pattern.h"

#include <map>

#include "base/error.h"
#include "grammar/fault.h"
#include "grammar/syntax.h"

namespace juno::grammar {
namespace {

const Ranges kDigits = {{'0', '9'}};
const Ranges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace = {{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
                       {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                       {0x3000, 0x3000}, {0xfeff, 0xfeff}};
const Ranges kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class Parser {
 public:
  Parser(Builder& to, std::string_view pattern) : to_(to), in_(pattern) {}

  NodeId run(NodeId next) {
    levels_.push_back({});
    while (!in_.done()) element();
    if (levels_.size() > 1) malformed("')' is missing");
    // Whatever may stand around an alternative that is not anchored.
    for (Branch& b : levels_[0].branches) {
      const Item anything{.rule = rule_of(all_but({})), .min = 0, .max = kUnlimited};
      if (!b.from_start) b.items.insert(b.items.begin(), anything);
      if (!b.to_end) b.items.push_back(anything);
    }
    return build_level(next);
  }

 private:
  struct Branch {
    Sequence items;
    bool from_start = false, to_end = false;
  };
  struct Level {
    std::vector<Branch> branches{1};
  };

  [[noreturn]] void refuse(std::string_view what) const {
    fail(Code::kBadData, "{} at character {} of the pattern", what, in_.at() + 1);
  }

  // What is no regular expression at all.
  [[noreturn]] void malformed(std::string_view what) const {
    throw Fault(Refusal::kInvalidSchema,
                fmt::format("{} at character {} of the pattern", what, in_.at() + 1));
  }

  // Classes are spelt once: with escapes they have many states.
  int rule_of(const Ranges& chars) {
    const auto [found, is_new] = classes_.try_emplace(tidy(chars), -1);
    if (is_new) {
      found->second = to_.add_rule();
      to_.define(found->second, json_char(to_, chars, to_.end()));
    }
    return found->second;
  }

  NodeId build_level(NodeId next) {
    Alternatives alternatives;
    for (Branch& b : levels_.back().branches) alternatives.push_back(std::move(b.items));
    const auto spell = [&](const Ranges& chars, NodeId then) { return json_char(to_, chars, then); };
    return build(to_, alternatives, spell, next);
  }

  Branch& here() { return levels_.back().branches.back(); }

  void add(Item item) {
    if (here().to_end) refuse("something after '$'");
    here().items.push_back(std::move(item));
    repetition(here().items.back());
  }

  void element() {
    if (in_.accept('|')) {
      levels_.back().branches.emplace_back();
    } else if (in_.accept('(')) {
      if (in_.accept('?') && !in_.accept(':')) refuse("a group that is neither plain nor (?:…)");
      levels_.push_back({});
    } else if (in_.accept(')')) {
      close();
    } else if (in_.accept('^')) {
      if (levels_.size() > 1 || !here().items.empty()) refuse("'^' that does not begin an alternative");
      here().from_start = true;
    } else if (in_.accept('$')) {
      if (levels_.size() > 1) refuse("'$' inside a group");
      here().to_end = true;
    } else if (in_.accept('.')) {
      add({.rule = rule_of(all_but(kLineEnds))});
    } else if (in_.accept('[')) {
      add({.rule = rule_of(char_class())});
    } else if (const char c = in_.peek(); c == '*' || c == '+' || c == '?' || c == '{') {
      malformed("a repetition of nothing");
    } else {
      add({.chars = atom()});
    }
  }

  void close() {
    if (levels_.size() == 1) malformed("')' without '('");
    const int group = to_.add_rule();
    to_.define(group, build_level(to_.end()));
    levels_.pop_back();
    add({.rule = group});
  }

  // One character or the class that an escape stands for.
  Ranges atom() {
    if (!in_.accept('\\')) {
      const uint32_t c = in_.character();
      return {{c, c}};
    }
    const auto either = [&](char c) { return in_.accept(c); };
    if (either('d')) return kDigits;
    if (either('D')) return all_but(kDigits);
    if (either('w')) return kWord;
    if (either('W')) return all_but(kWord);
    if (either('s')) return kSpace;
    if (either('S')) return all_but(kSpace);
    const uint32_t c = escaped();
    return {{c, c}};
  }

  uint32_t escaped() {
    constexpr std::pair<char, char> kControls[] = {
        {'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'f', '\f'}, {'v', '\v'}};
    for (const auto& [letter, control] : kControls) {
      if (in_.accept(letter)) return static_cast<uint32_t>(control);
    }
    for (const auto& [letter, digits] : {std::pair('x', 2), std::pair('u', 4)}) {
      if (!in_.accept(letter)) continue;
      const auto code = in_.hexadecimal(digits);
      if (!code) malformed("hexadecimal digits are missing");
      return *code;
    }
    if (in_.done()) malformed("'\\' ends it");
    const char c = in_.peek();
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (letter) refuse(c >= '1' && c <= '9' ? "a back reference" : "an escape that is not supported");
    return in_.character();
  }

  Ranges char_class() {
    const bool negated = in_.accept('^');
    Ranges chars;
    while (!in_.accept(']')) {
      if (in_.done()) malformed("a class that does not end");
      const Ranges one = in_.accept("\\b") ? Ranges{{'\b', '\b'}} : atom();
      const bool single = one.size() == 1 && one[0].first == one[0].second;
      if (single && in_.accept('-')) {
        if (in_.peek() == ']') {
          chars.emplace_back('-', '-');
        } else {
          const Ranges last = atom();
          if (last.size() != 1 || last[0].first != last[0].second || last[0].first < one[0].first)
            malformed("a range that runs backwards or to a class");
          chars.emplace_back(one[0].first, last[0].first);
          continue;
        }
      }
      chars.insert(chars.end(), one.begin(), one.end());
    }
    return negated ? all_but(chars) : chars;
  }

  void repetition(Item& item) {
    if (in_.accept('*')) {
      item.min = 0, item.max = kUnlimited;
    } else if (in_.accept('+')) {
      item.max = kUnlimited;
    } else if (in_.accept('?')) {
      item.min = 0;
    } else if (in_.accept('{')) {
      const auto count = [&] {
        const auto n = in_.number();
        if (!n) refuse(fmt::format("not a count up to {}", Cursor::kMaxCount));
        return *n;
      };
      item.min = item.max = count();
      if (in_.accept(',')) item.max = in_.peek() == '}' ? kUnlimited : count();
      if (!in_.accept('}')) malformed("'}' is missing");
      if (item.max != kUnlimited && item.max < item.min)
        malformed("a repetition of at most less than at least");
    } else {
      return;
    }
    in_.accept('?');  // lazy: the same texts
    const char again = in_.peek();
    if (again == '*' || again == '+' || again == '?') malformed("a repetition of a repetition");
  }

  Builder& to_;
  Cursor in_;
  std::vector<Level> levels_;
  std::map<Ranges, int> classes_;
};

}  // namespace

NodeId json_pattern(Builder& to, std::string_view pattern, NodeId next) {
  return Parser(to, pattern).run(next);
}

}  // namespace juno::grammar
