// SPDX-License-Identifier: Apache-2.0
#include "dialect/harmony.h"

#include <algorithm>

#include "dialect/call_form.h"
#include "dialect/json_text.h"
#include "grammar/free_text.h"

namespace juno::dialect {
namespace {

using grammar::Automaton;
using grammar::Builder;
using grammar::Ending;

constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessage = "<|message|>",
                           kEnd = "<|end|>", kCall = "<|call|>", kReturn = "<|return|>",
                           kConstrain = "<|constrain|>";
constexpr std::string_view kTo = "to=functions.";
constexpr size_t kMaxHeader = 256;  // bytes between two marks

// Whether the prompt's end expects the header of a message, not its text.
bool begins_with_header(std::string_view prompt) { return prompt.ends_with("<|start|>assistant"); }

class HarmonyParser : public ReplyParser {
 public:
  HarmonyParser(bool header, ToolUse use)
      : header_(header), use_(std::move(use)), reader_{in_, out_, use_}, reply_(read_reply()) {
    reply_.start();
  }
  std::vector<Piece> push(std::string_view text) override {
    in_.push(text);
    return out_.take();
  }
  std::vector<Piece> finish() override {
    in_.finish();
    return out_.take();
  }

 private:
  struct Header {
    bool reasoning = false;
    std::string tool;  // to whom
  };

  Task<bool> read_reply() {
    bool header = header_;
    for (;;) {
      const size_t begin = in_.at();
      Header to;
      if (header) header = co_await read_header(to);
      if (!to.tool.empty()) {
        const bool called = co_await read_call(to.tool);
        if (!called) out_.content(in_.between(begin, in_.at()));
      }
      if (!co_await read_text(to.reasoning)) co_return true;
      header = true;
    }
  }

  // What the marks before a message's text say; false, and nothing is read, where there are none.
  Task<bool> read_header(Header& header) {
    std::string text;
    for (;;) {
      const std::string_view rest = in_.rest();
      if (const size_t end = rest.find(kMessage); end != rest.npos) {
        text = rest.substr(0, end);
        in_.skip(end + kMessage.size());
        break;
      }
      if (rest.size() > kMaxHeader + kMessage.size()) co_return false;
      const bool more = co_await in_;
      if (!more) co_return false;
    }
    if (text.size() > kMaxHeader || text.find(kChannel) == text.npos) {
      in_.go_to(in_.at() - text.size() - kMessage.size());
      co_return false;
    }
    header.reasoning = text.find("<|channel|>analysis") != text.npos;
    if (const size_t to = text.find(kTo); to != text.npos) {
      header.tool = text.substr(to + kTo.size());
      header.tool.resize(std::min(header.tool.find_first_of(" <"), header.tool.size()));
    }
    co_return true;
  }

  // Where it is none, in_ stays at its text.
  Task<bool> read_call(const std::string& name) {
    const size_t begin = in_.at();
    const bool may = !use_.tools.empty() && use_.choice != Choice::kNone &&
                     (out_.calls() == 0 || use_.parallel) && reader_.find(name);
    if (!may) co_return false;
    out_.begin_call(use_.held);
    out_.call(name);
    co_await skip_blanks(in_);
    const Put put = [&](std::string_view text) { out_.arguments(text); };
    const bool read = co_await read_json(in_, put);
    const bool whole = read && Json::accept(out_.arguments_text()) && out_.arguments_text()[0] == '{';
    if (out_.end_call(whole)) co_return co_await skip_blanks(in_);
    in_.go_to(begin);
    co_return false;
  }

  // Text up to the end of the message; false at the end of all.
  Task<bool> read_text(bool reasoning) {
    for (;;) {
      const std::string_view rest = in_.rest();
      size_t size = rest.size(), kept = 0, mark = 0;
      for (const std::string_view end : {kEnd, kCall, kReturn, kStart, kChannel}) {
        kept = std::max(kept, begun(rest, end));
        if (const size_t found = rest.find(end); found < size) {
          size = found;
          mark = end == kStart || end == kChannel ? 0 : end.size();
        }
      }
      const bool ends = size < rest.size();
      const std::string_view text = without_blanks_at_end(rest.substr(0, ends ? size : rest.size() - kept));
      put(reasoning, text);
      if (ends) {
        in_.skip(size + mark);
        co_return true;
      }
      in_.skip(text.size());
      const bool more = co_await in_;
      if (more) continue;
      put(reasoning, in_.rest());
      in_.skip(in_.rest().size());
      co_return false;
    }
  }

  void put(bool reasoning, std::string_view text) {
    if (reasoning) {
      out_.reasoning(text);
    } else {
      out_.content(text);
    }
  }

  const bool header_;
  const ToolUse use_;
  Stream in_;
  Output out_;
  CallReader reader_;
  Task<bool> reply_;
};

class Harmony : public Dialect {
 public:
  std::string_view name() const override { return "harmony"; }
  bool has_tools() const override { return true; }
  bool has_reasoning() const override { return true; }
  std::vector<std::string> markers() const override {
    std::vector<std::string> all;
    for (const std::string_view mark : {kStart, kChannel, kMessage, kEnd, kCall, kReturn, kConstrain})
      all.emplace_back(mark);
    return all;
  }
  std::unique_ptr<ReplyParser> parser(std::string_view prompt, const ToolUse* use) const override {
    return std::make_unique<HarmonyParser>(begins_with_header(prompt), use ? *use : ToolUse());
  }

  Result<Automaton> grammar(std::string_view, const ToolUse& use) const override {
    return guard([&] {
      Builder to;
      const int root = to.add_rule();
      CallWriter writer(to, use);
      const NodeId name = writer.named([&](const Tool& tool) {
        return to.literal(" <|constrain|>json<|message|>", writer.arguments(tool, to.end()));
      });
      NodeId last = to.literal("commentary to=functions.", name);
      if (use.choice == Choice::kAuto)
        last = to.either(
            to.literal("final<|message|>", grammar::text_until(to, kStart, Ending::kAnyTime, to.never())),
            last);
      to.define(root, messages(to, last));
      return to.finish();
    });
  }

  Result<Automaton> around(std::string_view prompt, const Automaton& inner) const override {
    return guard([&] {
      Builder to;
      const int root = to.add_rule();
      const NodeId content = to.call(to.insert(inner), to.end());
      to.define(root,
                begins_with_header(prompt) ? messages(to, to.literal("final<|message|>", content)) : content);
      return to.finish();
    });
  }

 private:
  // Any number of thoughts, then `last`, which begins with its channel's name.
  static NodeId messages(Builder& to, NodeId last) {
    const NodeId channel = to.forward();
    const NodeId again = to.literal("<|start|>assistant", channel);
    const NodeId thought = to.literal("analysis<|message|>", text_until(to, kEnd, Ending::kMark, again));
    to.settle(channel, to.literal(kChannel, to.either(thought, last)));
    return channel;
  }
};

}  // namespace

std::unique_ptr<Dialect> make_harmony() { return std::make_unique<Harmony>(); }

}  // namespace juno::dialect
