// SPDX-License-Identifier: Apache-2.0
// The parser: one class, its expressions in jinja_parse_expression.cc, its statements in
// jinja_parse_statement.cc.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tokenizer/jinja_ast.h"

namespace juno::tokenizer::jinja {

class Parser {
 public:
  Parser(Template& out, std::vector<Token> tokens) : out_(out), tokens_(std::move(tokens)) {}
  void run();

 private:
  // Tokens.
  const Token& token(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is_operator(std::string_view s) const {
    return token().type == TokenType::kOperator && token().text == s;
  }
  bool is_name(std::string_view s) const { return token().type == TokenType::kName && token().text == s; }
  bool skip_operator(std::string_view s);
  bool skip_name(std::string_view s);
  void expect_operator(std::string_view s);
  void expect_name(std::string_view s);
  void expect(TokenType type, std::string_view what);
  std::string take_name();
  [[noreturn]] void fail_here(const std::string& what) const { fail_at(out_.name, token().at, what); }
  Symbol symbol(const std::string& s) { return &*out_.symbols.insert(s).first; }
  struct Nested {  // one level deeper, to a limit: the C++ stack is finite
    explicit Nested(Parser& p);
    ~Nested() { --parser.depth_; }
    Parser& parser;
  };

  // Statements.
  Body body(std::initializer_list<std::string_view> ends);
  std::unique_ptr<const Stmt> statement();
  std::unique_ptr<const Stmt> parse_if(Position at);
  std::unique_ptr<const Stmt> parse_for(Position at);
  std::unique_ptr<const Stmt> parse_set(Position at);
  std::unique_ptr<const Stmt> parse_macro(Position at);
  std::unique_ptr<const Stmt> parse_call(Position at);
  std::unique_ptr<const Stmt> parse_filter(Position at);
  std::unique_ptr<const Stmt> parse_with(Position at);
  std::unique_ptr<const Stmt> parse_generation(Position at);
  std::unique_ptr<const Stmt> parse_break(Position at);
  std::unique_ptr<const Stmt> parse_continue(Position at);
  std::unique_ptr<const Stmt> jump(Position at, Flow flow);
  Body closed_body(std::string_view end);
  Target target(bool attributes);
  Target one_target(bool attributes);
  void signature(MacroBody& macro);
  void macro_body(MacroBody& macro, std::string_view end);

  // Expressions, from the loosest to the tightest.
  ExprPtr expression();
  ExprPtr tuple(bool conditional, bool parenthesised = false);
  ExprPtr logic(std::string_view word, ExprPtr (Parser::*operand)());
  ExprPtr either() { return logic("or", &Parser::both); }
  ExprPtr both() { return logic("and", &Parser::negation); }
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr arithmetic(int level);
  ExprPtr concatenation();
  ExprPtr operand(int level);
  ExprPtr unary(bool with_filters = true);
  ExprPtr primary();
  ExprPtr name_or_constant();
  ExprPtr number();
  ExprPtr list();
  ExprPtr dict();
  bool tuple_ends() const;
  ExprPtr with_suffixes(ExprPtr first, bool with_filters);
  std::unique_ptr<const Suffix> dot();
  std::unique_ptr<const Suffix> bracket();
  std::unique_ptr<const Suffix> filter();
  std::unique_ptr<const Suffix> test();
  std::unique_ptr<const Suffix> call_suffix();
  Arguments arguments();
  void check_call(const ExprPtr& first, const std::vector<std::unique_ptr<const Suffix>>& before);
  void check_mapped(std::string_view filter, Position at, const Arguments& given) const;
  std::vector<std::unique_ptr<const Suffix>> filter_list(bool first_without_pipe);

  Template& out_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  std::vector<MacroBody*> macros_;
  // Names that the template gives a value itself, and the calls to check when all are known.
  std::unordered_set<std::string> bound_;
  std::vector<std::pair<std::string, Position>> called_names_, called_methods_;
};

}  // namespace juno::tokenizer::jinja
