// SPDX-License-Identifier: Apache-2.0
// How a model's replies say more than text: reasoning, and calls of tools. Found from its chat template; one
// dialect is one entry of dialects.cc.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/automaton.h"

namespace juno::dialect {

struct Tool {
  std::string name;
  const nlohmann::ordered_json* parameters = nullptr;  // a JSON Schema
};

enum class Choice : uint8_t { kNone, kAuto, kRequired, kNamed };

struct ToolUse {
  std::vector<Tool> tools;
  Choice choice = Choice::kAuto;
  std::string name;      // with kNamed
  bool parallel = true;  // more than one call
  // Whether grammar() holds the reply: calls then go out as they come. Without it a call waits until it is
  // whole, so that what only looks like one stays content.
  bool held = true;
};

// A piece of a reply. A call opens with its name; pieces of its arguments (JSON text) follow.
struct Piece {
  enum class Kind : uint8_t { kContent, kReasoning, kCall, kArguments };
  Kind kind = Kind::kContent;
  std::string text;
  int call = 0;  // index of the call, with kCall and kArguments
};

// Splits the text of one reply, as it comes, cut anywhere.
class ReplyParser {
 public:
  virtual ~ReplyParser() = default;
  virtual std::vector<Piece> push(std::string_view text) = 0;
  virtual std::vector<Piece> finish() = 0;  // what was held back; a call that broke off stays what it was
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string_view name() const = 0;
  virtual bool has_tools() const = 0;
  virtual bool has_reasoning() const = 0;

  // Texts of control tokens that belong to the reply, such as "<tool_call>": they must not be left out.
  virtual std::vector<std::string> markers() const = 0;

  // prompt: the rendered prompt, whose end may have opened the reasoning already. use: null without tools.
  virtual std::unique_ptr<ReplyParser> parser(std::string_view prompt, const ToolUse* use) const = 0;

  // What holds a reply to calls whose arguments fit their schemas: with kAuto free text until a call begins,
  // with kRequired and kNamed nothing but calls (reasoning first where the prompt has opened it). Errors are
  // those of grammar: kBadData with keyword and JSON pointer.
  virtual Result<grammar::Automaton> grammar(std::string_view prompt, const ToolUse& use) const = 0;
  // The same for a reply held to `inner` (a schema or grammar): reasoning is free, the content is held.
  virtual Result<grammar::Automaton> around(std::string_view prompt,
                                            const grammar::Automaton& inner) const = 0;
};

// By what the template's source says; never null: a template without tools or reasoning has the plain
// dialect.
std::unique_ptr<Dialect> find_dialect(std::string_view template_source);

}  // namespace juno::dialect
