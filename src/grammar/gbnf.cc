// SPDX-License-Identifier: Apache-2.0
#include "grammar/gbnf.h"

#include <cctype>
#include <map>
#include <string>

#include "grammar/fault.h"
#include "grammar/syntax.h"

namespace juno::grammar {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), in_(text) { rule("root"); }

  Automaton run() {
    if (text_.size() > kMaxGrammarBytes) fault(fmt::format("it is longer than {} bytes", kMaxGrammarBytes));
    for (blanks(true); !in_.done(); blanks(true)) definition();
    for (const auto& [name, id] : rules_) {
      if (!to_.defined(id)) fault(fmt::format("rule '{}' is not defined", name));
    }
    return to_.finish();
  }

 private:
  // A bracket that is open, or the rule itself: what was read of it.
  struct Level {
    int rule;
    Alternatives alternatives{1};
  };

  [[noreturn]] void fault(const std::string& what) const {
    Fault f(Refusal::kInvalidGrammar,
            fmt::format("[grammar] line {}, column {}: {}", in_.line(), in_.column(), what));
    f.line = in_.line();
    f.column = in_.column();
    throw f;
  }

  int rule(const std::string& name) {
    const auto [found, is_new] = rules_.try_emplace(name, -1);
    if (is_new) found->second = to_.add_rule();
    return found->second;
  }

  void blanks(bool newlines) {
    while (!in_.done()) {
      const char c = in_.peek();
      if (c == '#') {
        while (!in_.done() && in_.peek() != '\n') in_.accept(in_.peek());
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        in_.accept(c);
      } else {
        return;
      }
    }
  }

  static bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; }

  std::string name() {
    std::string name;
    while (!in_.done() && in_name(in_.peek())) {
      name += in_.peek();
      in_.accept(in_.peek());
    }
    return name;
  }

  void definition() {
    const std::string defined = name();
    if (defined.empty()) fault("a rule's name is expected");
    blanks(false);
    if (!in_.accept("::=")) fault(fmt::format("'::=' is expected after '{}'", defined));
    const int id = rule(defined);
    if (to_.defined(id)) fault(fmt::format("rule '{}' is defined twice", defined));
    levels_ = {{id}};
    for (;;) {
      blanks(levels_.size() > 1 || just_after_bar_ || levels_[0].alternatives.back().empty());
      if (in_.done() || in_.peek() == '\n' || in_.peek() == '\r') break;
      element();
    }
    if (levels_.size() > 1) fault("')' is missing");
    close();
  }

  // The innermost level becomes a rule.
  void close() {
    const auto spell = [&](const Ranges& chars, NodeId next) { return utf8(to_, chars, next); };
    to_.define(levels_.back().rule, build(to_, levels_.back().alternatives, spell, to_.end()));
    levels_.pop_back();
  }

  Sequence& here() { return levels_.back().alternatives.back(); }

  void element() {
    just_after_bar_ = false;
    if (in_.accept('|')) {
      levels_.back().alternatives.emplace_back();
      just_after_bar_ = true;
    } else if (in_.accept('(')) {
      levels_.push_back({to_.add_rule()});
      just_after_bar_ = true;
    } else if (in_.accept(')')) {
      if (levels_.size() == 1) fault("')' without '('");
      const int group = levels_.back().rule;
      close();
      here().push_back({.rule = group});
      repetition(here().size() - 1);
    } else if (in_.accept('"')) {
      literal();
    } else if (in_.accept('[')) {
      here().push_back({.chars = char_class()});
      repetition(here().size() - 1);
    } else if (in_.accept('.')) {
      here().push_back({.chars = all_but({})});
      repetition(here().size() - 1);
    } else if (const std::string used = name(); !used.empty()) {
      here().push_back({.rule = rule(used)});
      repetition(here().size() - 1);
    } else {
      fault(fmt::format("'{}' is not understood here", in_.peek()));
    }
  }

  // Repeats all of a literal, not its last character.
  void literal() {
    Sequence text;
    while (!in_.accept('"')) {
      if (in_.done() || in_.peek() == '\n') fault("a literal does not end");
      const uint32_t c = character();
      text.push_back({.chars = {{c, c}}});
    }
    const bool repeated = std::string_view("*+?{").find(in_.peek()) != std::string_view::npos && !in_.done();
    if (!repeated || text.size() == 1) {
      here().insert(here().end(), text.begin(), text.end());
      if (repeated) repetition(here().size() - 1);
      return;
    }
    levels_.push_back({to_.add_rule(), {std::move(text)}});
    const int group = levels_.back().rule;
    close();
    here().push_back({.rule = group});
    repetition(here().size() - 1);
  }

  uint32_t character() {
    if (!in_.accept('\\')) return in_.character();
    const auto code = [&](int digits) {
      const auto value = in_.hexadecimal(digits);
      if (!value || *value > kLastChar) fault(fmt::format("{} hexadecimal digits are expected", digits));
      return *value;
    };
    if (in_.accept('x')) return code(2);
    if (in_.accept('u')) return code(4);
    if (in_.accept('U')) return code(8);
    if (in_.accept('n')) return '\n';
    if (in_.accept('r')) return '\r';
    if (in_.accept('t')) return '\t';
    for (char same : {'\\', '"', '[', ']', '-', '^'}) {
      if (in_.accept(same)) return static_cast<uint32_t>(same);
    }
    fault("an escape that nobody knows");
  }

  Ranges char_class() {
    const bool negated = in_.accept('^');
    Ranges chars;
    while (!in_.accept(']')) {
      if (in_.done() || in_.peek() == '\n') fault("a class does not end");
      const uint32_t first = character();
      uint32_t last = first;
      if (in_.accept('-')) {
        if (in_.peek() == ']') {
          chars.emplace_back('-', '-');
        } else {
          last = character();
        }
      }
      if (last < first) fault("a range runs backwards");
      chars.emplace_back(first, last);
    }
    if (!negated && chars.empty()) fault("an empty class allows nothing");
    return negated ? all_but(chars) : chars;
  }

  void repetition(size_t index) {
    Item& item = here()[index];
    if (in_.accept('*')) {
      item.min = 0, item.max = kUnlimited;
    } else if (in_.accept('+')) {
      item.max = kUnlimited;
    } else if (in_.accept('?')) {
      item.min = 0;
    } else if (in_.accept('{')) {
      const auto count = [&] {
        blanks(false);
        const auto n = in_.number();
        if (!n) fault(fmt::format("a count from 0 to {} is expected", Cursor::kMaxCount));
        blanks(false);
        return *n;
      };
      item.min = item.max = count();
      if (in_.accept(',')) {
        blanks(false);
        item.max = in_.peek() == '}' ? kUnlimited : count();
      }
      if (!in_.accept('}')) fault("'}' is expected");
      if (item.max != kUnlimited && item.max < item.min) fault("a repetition of at most less than at least");
    }
  }

  std::string_view text_;
  Cursor in_;
  Builder to_;
  std::map<std::string, int> rules_;
  std::vector<Level> levels_;
  bool just_after_bar_ = false;
};

}  // namespace

Automaton compile_gbnf(std::string_view text) { return Parser(text).run(); }

}  // namespace juno::grammar
