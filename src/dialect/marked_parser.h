// SPDX-License-Identifier: Apache-2.0
// Splits replies of a marked dialect.
#pragma once
#include "dialect/marked.h"

namespace juno::dialect {

// How the prompt's end leaves the reasoning.
enum class Thought : uint8_t { kNotBegun, kOpen, kDone };
Thought thought_at_end(std::string_view prompt, const Marks& reasoning);

class MarkedParser : public ReplyParser {
 public:
  MarkedParser(const MarkedDialect& what, Thought thought, ToolUse use);

  std::vector<Piece> push(std::string_view text) override;
  std::vector<Piece> finish() override;

 private:
  Task<bool> read_reply();
  Task<bool> read_reasoning();
  Task<bool> read_content();
  Task<bool> read_call_at_start();
  Task<bool> read_calls(bool streamed);
  // What comes before one of the marks (an empty one never comes). Blanks before the mark stay unread;
  // -1 at the end.
  Task<int> read_to_mark(Marks marks, Piece::Kind kind);
  void put(Piece::Kind kind, std::string_view text);
  bool may_call() const;

  const MarkedDialect what_;
  const Thought thought_;
  const ToolUse use_;
  Stream in_;
  Output out_;
  CallReader reader_;
  Task<bool> reply_;
};

}  // namespace juno::dialect
