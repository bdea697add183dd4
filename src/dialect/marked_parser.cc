// SPDX-License-Identifier: Apache-2.0
#include "dialect/marked_parser.h"

#include <algorithm>

namespace juno::dialect {

using Kind = Piece::Kind;

Thought thought_at_end(std::string_view prompt, const Marks& reasoning) {
  if (reasoning.open.empty()) return Thought::kDone;
  prompt = without_blanks_at_end(prompt);
  if (prompt.ends_with(without_blanks_at_end(reasoning.open))) return Thought::kOpen;
  return prompt.ends_with(without_blanks_at_end(reasoning.close)) ? Thought::kDone : Thought::kNotBegun;
}

MarkedParser::MarkedParser(const MarkedDialect& what, Thought thought, ToolUse use)
    : what_(what), thought_(thought), use_(std::move(use)), reader_{in_, out_, use_}, reply_(read_reply()) {
  reply_.start();
}

std::vector<Piece> MarkedParser::push(std::string_view text) {
  in_.push(text);
  return out_.take();
}

std::vector<Piece> MarkedParser::finish() {
  in_.finish();
  return out_.take();
}

bool MarkedParser::may_call() const {
  if (!what_.calls.form || use_.tools.empty() || use_.choice == Choice::kNone) return false;
  return out_.calls() == 0 || (use_.parallel && !what_.calls.single);
}

void MarkedParser::put(Kind kind, std::string_view text) {
  if (kind == Kind::kReasoning) {
    out_.reasoning(text);
  } else {
    out_.content(text);
  }
}

Task<bool> MarkedParser::read_reply() {
  if (thought_ != Thought::kDone) co_await read_reasoning();
  if (what_.calls.at_start && may_call()) co_await read_call_at_start();
  co_return co_await read_content();
}

Task<bool> MarkedParser::read_reasoning() {
  const bool begins = co_await accept_words(in_, what_.reasoning.open);
  if (!begins && thought_ != Thought::kOpen) co_return false;
  co_await skip_blanks(in_);
  if (co_await read_to_mark({what_.reasoning.close, {}}, Kind::kReasoning) < 0) co_return true;
  co_await accept_words(in_, what_.reasoning.close);
  co_return co_await skip_blanks(in_);
}

Task<bool> MarkedParser::read_content() {
  bool opened = !what_.content.open.empty();
  if (opened) opened = co_await accept_words(in_, what_.content.open);
  if (opened) co_await skip_blanks(in_);
  for (;;) {
    const std::string_view trigger =
        may_call() && !what_.calls.at_start ? what_.calls.trigger : std::string_view();
    const int found =
        co_await read_to_mark({trigger, opened ? what_.content.close : std::string_view()}, Kind::kContent);
    if (found < 0) co_return true;
    const size_t begin = in_.at();
    co_await accept_words(in_, found == 0 ? trigger : what_.content.close);
    const size_t end = in_.at();
    bool taken = found == 1;
    if (!taken) taken = co_await read_calls(use_.held);
    if (taken) {
      co_await skip_blanks(in_);
    } else {
      in_.go_to(end);
      out_.content(in_.between(begin, end));
    }
  }
}

Task<bool> MarkedParser::read_call_at_start() {
  const size_t begin = in_.at();
  const bool triggered = co_await accept_words(in_, what_.calls.trigger);
  // What the grammar holds begins exactly so; anything else must show that it is a call.
  const bool plain = co_await accept(in_, what_.calls.open);
  if (plain) in_.go_to(in_.at() - what_.calls.open.size());
  if (co_await read_calls(use_.held && (triggered || plain))) co_return co_await skip_blanks(in_);
  in_.go_to(begin);
  co_return false;
}

Task<bool> MarkedParser::read_calls(bool streamed) {
  const Calls& calls = what_.calls;
  if (!calls.at_start && !co_await accept_words(in_, calls.open)) co_return false;
  size_t end = in_.at();
  for (bool more = true; more;) {
    out_.begin_call(streamed);
    const bool read = co_await calls.form->read(reader_);
    const bool whole = read && Json::accept(out_.arguments_text()) && out_.arguments_text()[0] == '{';
    if (!out_.end_call(whole)) {
      in_.go_to(end);
      co_return out_.calls() > 0;
    }
    end = in_.at();
    more = may_call();
    if (more) more = co_await accept_words(in_, calls.between);
  }
  co_await accept_words(in_, calls.close);
  co_return true;
}

Task<int> MarkedParser::read_to_mark(Marks marks, Kind kind) {
  for (;;) {
    const std::string_view rest = in_.rest();
    size_t size = rest.size(), kept = 0;
    int which = -1;
    for (const auto& [index, mark] : {std::pair(0, marks.open), std::pair(1, marks.close)}) {
      if (mark.empty()) continue;
      kept = std::max(kept, begun(rest, mark));
      if (const size_t found = rest.find(mark); found < size) {
        size = found;
        which = index;
      }
    }
    const std::string_view before =
        without_blanks_at_end(rest.substr(0, which < 0 ? rest.size() - kept : size));
    put(kind, before);
    in_.skip(before.size());
    if (which >= 0) co_return which;
    const bool more = co_await in_;
    if (!more) {
      put(kind, in_.rest());
      in_.skip(in_.rest().size());
      co_return -1;
    }
  }
}

}  // namespace juno::dialect
