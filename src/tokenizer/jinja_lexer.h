// SPDX-License-Identifier: Apache-2.0
// A template's source as tokens, white space control done (trim_blocks and lstrip_blocks on, as transformers
// sets).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace juno::tokenizer::jinja {

struct Position {
  uint32_t line = 1, column = 1;
};

enum class TokenType {
  kData,
  kBlockBegin,
  kBlockEnd,
  kVariableBegin,
  kVariableEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenType type;
  std::string text;  // data, name, operator; a string's value; a number without underscores
  Position at;
};

// Throws Error naming `name`, line and column.
std::vector<Token> tokenize(std::string_view source, const std::string& name);

// "[tokenizer] NAME:LINE:COLUMN: what", thrown.
[[noreturn]] void fail_at(const std::string& name, Position at, const std::string& what);

}  // namespace juno::tokenizer::jinja
