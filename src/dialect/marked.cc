// SPDX-License-Identifier: Apache-2.0
#include "dialect/marked.h"

#include <algorithm>

#include "dialect/marked_parser.h"
#include "grammar/free_text.h"

namespace juno::dialect {
namespace {

using grammar::Automaton;
using grammar::Builder;
using grammar::Ending;

constexpr int32_t kMaxCalls = 16;  // of one reply held to calls: an end comes

NodeId calls_of(Builder& to, const Calls& calls, const ToolUse& use) {
  CallWriter writer(to, use);
  const int call = to.add_rule();
  to.define(call, calls.form->write(writer, to.end()));
  const NodeId close = to.literal(calls.close, to.end());
  const auto another = [&](NodeId next) { return to.literal(calls.between, to.call(call, next)); };
  const int32_t most = calls.single || !use.parallel ? 0 : kMaxCalls - 1;
  const NodeId first = to.call(call, to.repeat(another, 0, most, close));
  return calls.at_start ? first : to.literal(calls.open, first);
}

// A blank line, a line end, or nothing.
NodeId line_ends(Builder& to, NodeId next) {
  return to.either(to.literal("\n\n", next), to.either(to.literal("\n", next), next));
}

// The control tokens that a text may hold.
std::vector<std::string> marks_in(std::string_view text) {
  std::vector<std::string> marks;
  while (!text.empty()) {
    const char open = text[0];
    const char close = open == '<' ? '>' : ']';
    const size_t end = text.find(close);
    if ((open != '<' && open != '[') || end == text.npos || end == 1) {
      text.remove_prefix(1);
      continue;
    }
    marks.emplace_back(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return marks;
}

class Marked : public Dialect {
 public:
  explicit Marked(MarkedDialect what) : what_(std::move(what)) {}

  std::string_view name() const override { return what_.name; }
  bool has_tools() const override { return what_.calls.form != nullptr; }
  bool has_reasoning() const override { return !what_.reasoning.open.empty(); }

  std::vector<std::string> markers() const override {
    std::vector<std::string> all;
    const Calls& calls = what_.calls;
    std::vector<std::string_view> texts;
    if (calls.form) texts = calls.form->marks();
    for (const std::string_view text :
         {calls.trigger, calls.open, calls.between, calls.close, what_.reasoning.open, what_.reasoning.close,
          what_.content.open, what_.content.close})
      texts.push_back(text);
    for (const std::string_view text : texts) {
      for (const std::string& mark : marks_in(text)) {
        if (std::find(all.begin(), all.end(), mark) == all.end()) all.push_back(mark);
      }
    }
    return all;
  }

  std::unique_ptr<ReplyParser> parser(std::string_view prompt, const ToolUse* use) const override {
    return std::make_unique<MarkedParser>(what_, thought_at_end(prompt, what_.reasoning),
                                          use ? *use : ToolUse());
  }

  Result<Automaton> grammar(std::string_view prompt, const ToolUse& use) const override {
    return guard([&] {
      Builder to;
      const int root = to.add_rule();
      to.define(root, after_reasoning(to, prompt, reply(to, use)));
      return to.finish();
    });
  }

  Result<Automaton> around(std::string_view prompt, const Automaton& inner) const override {
    return guard([&] {
      Builder to;
      const int root = to.add_rule();
      const int content = to.insert(inner);
      const NodeId body =
          to.literal(what_.content.open, to.call(content, to.literal(what_.content.close, to.end())));
      to.define(root, after_reasoning(to, prompt, body));
      return to.finish();
    });
  }

 private:
  NodeId reply(Builder& to, const ToolUse& use) const {
    const Calls& calls = what_.calls;
    const NodeId body = calls_of(to, calls, use);
    if (calls.at_start) {
      const NodeId any = to.either(to.literal(calls.trigger, body), body);
      if (use.choice != Choice::kAuto) return any;
      return to.either(any, grammar::text_unless(to, {calls.trigger, calls.open}));
    }
    if (use.choice == Choice::kAuto) return grammar::text_until(to, calls.trigger, Ending::kAnyTime, body);
    return to.literal(calls.trigger, body);
  }

  NodeId after_reasoning(Builder& to, std::string_view prompt, NodeId body) const {
    const Marks& marks = what_.reasoning;
    const Thought thought = thought_at_end(prompt, marks);
    if (thought == Thought::kDone) return body;
    const NodeId thinking = grammar::text_until(to, marks.close, Ending::kMark, line_ends(to, body));
    return thought == Thought::kOpen ? thinking : to.either(to.literal(marks.open, thinking), body);
  }

  const MarkedDialect what_;
};

}  // namespace

std::unique_ptr<Dialect> make_marked(MarkedDialect what) { return std::make_unique<Marked>(std::move(what)); }

}  // namespace juno::dialect
