// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_parser.h"
#include "tokenizer/jinja_parser_state.h"

namespace juno::tokenizer::jinja {

namespace {
constexpr int kMaxDepth = 100;
}

std::unique_ptr<const Template> parse(std::string_view source, std::string name) {
  auto out = std::make_unique<Template>();
  out->name = std::move(name);
  out->source = source;
  Parser(*out, tokenize(source, out->name)).run();
  return out;
}

void Parser::run() {
  bound_.insert("caller");  // given to macros by {% call %}
  out_.body = body({});
  for (auto& [name, at] : called_names_) {
    if (!bound_.count(name) && !find_function(name))
      fail_at(out_.name, at, "the function '" + name + "' is not known");
  }
  for (auto& [name, at] : called_methods_) {
    if (!bound_.count(name) && !is_method_name(name))
      fail_at(out_.name, at, "the method '" + name + "' is not known");
  }
}

Parser::Nested::Nested(Parser& p) : parser(p) {
  if (p.depth_ >= kMaxDepth)
    p.fail_here("the template is nested more than " + std::to_string(kMaxDepth) + " deep");
  ++p.depth_;
}

bool Parser::skip_operator(std::string_view s) { return is_operator(s) ? (++at_, true) : false; }
bool Parser::skip_name(std::string_view s) { return is_name(s) ? (++at_, true) : false; }

void Parser::expect_operator(std::string_view s) {
  if (!skip_operator(s)) fail_here("expected '" + std::string(s) + "'");
}

void Parser::expect_name(std::string_view s) {
  if (!skip_name(s)) fail_here("expected '" + std::string(s) + "'");
}

void Parser::expect(TokenType type, std::string_view what) {
  if (token().type != type) fail_here("expected " + std::string(what));
  ++at_;
}

std::string Parser::take_name() {
  if (token().type != TokenType::kName) fail_here("expected a name");
  return tokens_[at_++].text;
}

// Statements up to a tag that starts with one of `ends`, which is left as the current token; up to the end of
// the template where there are none.
Body Parser::body(std::initializer_list<std::string_view> ends) {
  Nested nested(*this);
  Body out;
  while (token().type != TokenType::kEnd) {
    Position at = token().at;
    if (token().type == TokenType::kData) {
      out.push_back(std::make_unique<Data>(at, Text(token().text)));
      ++at_;
    } else if (token().type == TokenType::kVariableBegin) {
      ++at_;
      auto print = std::make_unique<Print>(at);
      print->value = tuple(true);
      expect(TokenType::kVariableEnd, "'}}'");
      out.push_back(std::move(print));
    } else {
      ++at_;  // {%
      if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return is_name(end); })) return out;
      out.push_back(statement());
      expect(TokenType::kBlockEnd, "'%}'");
    }
  }
  if (ends.size()) fail_here("the template ends, '" + std::string(*(ends.end() - 1)) + "' is missing");
  return out;
}

// The body of a statement whose opening tag ends here, and its closing tag's name.
Body Parser::closed_body(std::string_view end) {
  expect(TokenType::kBlockEnd, "'%}'");
  Body out = body({end});
  ++at_;
  return out;
}

std::unique_ptr<const Stmt> Parser::statement() {
  struct Tag {
    std::string_view name;
    std::unique_ptr<const Stmt> (Parser::*parse)(Position);
  };
  constexpr Tag kTags[] = {
      {"if", &Parser::parse_if},
      {"for", &Parser::parse_for},
      {"set", &Parser::parse_set},
      {"macro", &Parser::parse_macro},
      {"call", &Parser::parse_call},
      {"filter", &Parser::parse_filter},
      {"with", &Parser::parse_with},
      {"break", &Parser::parse_break},
      {"continue", &Parser::parse_continue},
      {"generation", &Parser::parse_generation},
  };
  Position at = token().at;
  for (const Tag& tag : kTags) {
    if (skip_name(tag.name)) return (this->*tag.parse)(at);
  }
  fail_here("the tag '" + token().text + "' is not known here");
}

std::unique_ptr<const Stmt> Parser::parse_if(Position at) {
  auto out = std::make_unique<If>(at);
  bool more = true;
  while (more) {
    ExprPtr test = tuple(false);
    expect(TokenType::kBlockEnd, "'%}'");
    Body then = body({"elif", "else", "endif"});
    out->branches.emplace_back(std::move(test), std::move(then));
    more = skip_name("elif");
  }
  if (skip_name("else")) {
    out->branches.emplace_back(nullptr, closed_body("endif"));
  } else {
    expect_name("endif");
  }
  return out;
}

std::unique_ptr<const Stmt> Parser::parse_for(Position at) {
  auto out = std::make_unique<For>(at);
  out->loop = symbol("loop");
  out->target = target(false);
  expect_name("in");
  out->sequence = tuple(false);
  if (skip_name("if")) out->filter = expression();
  if (is_name("recursive")) fail_here("recursive loops are not known");
  expect(TokenType::kBlockEnd, "'%}'");
  ++loops_;
  out->body = body({"else", "endfor"});
  --loops_;
  if (skip_name("else")) {
    out->otherwise = closed_body("endfor");
  } else {
    expect_name("endfor");
  }
  return out;
}

std::unique_ptr<const Stmt> Parser::parse_set(Position at) {
  Target into = target(true);
  if (skip_operator("=")) {
    auto out = std::make_unique<Set>(at);
    out->target = std::move(into);
    out->value = tuple(true);
    return out;
  }
  auto out = std::make_unique<SetBlock>(at);
  out->target = std::move(into);
  out->filters = filter_list(false);
  out->body = closed_body("endset");
  return out;
}

std::unique_ptr<const Stmt> Parser::parse_macro(Position at) {
  auto out = std::make_unique<Macro>(at);
  out->macro.name = take_name();
  out->macro.at = at;
  out->name = symbol(out->macro.name);
  bound_.insert(out->macro.name);
  signature(out->macro);
  macro_body(out->macro, "endmacro");
  return out;
}

std::unique_ptr<const Stmt> Parser::parse_call(Position at) {
  auto out = std::make_unique<CallBlock>(at);
  out->caller.name = "caller";
  out->caller.at = at;
  if (is_operator("(")) signature(out->caller);
  Position call_at = token().at;
  std::string name = take_name();
  called_names_.emplace_back(name, call_at);
  out->function = std::make_unique<Name>(call_at, symbol(name));
  if (!is_operator("(")) fail_here("expected a call of a macro");
  out->arguments = arguments();
  macro_body(out->caller, "endcall");
  return out;
}

std::unique_ptr<const Stmt> Parser::parse_filter(Position at) {
  auto out = std::make_unique<FilterBlock>(at);
  out->filters = filter_list(true);
  out->body = closed_body("endfilter");
  return out;
}

std::unique_ptr<const Stmt> Parser::parse_with(Position at) {
  auto out = std::make_unique<With>(at);
  while (token().type != TokenType::kBlockEnd) {
    if (!out->values.empty()) expect_operator(",");
    Target into = target(false);
    expect_operator("=");
    out->values.emplace_back(std::move(into), expression());
  }
  out->body = closed_body("endwith");
  return out;
}

std::unique_ptr<const Stmt> Parser::parse_generation(Position at) {
  auto out = std::make_unique<With>(at);
  out->body = closed_body("endgeneration");
  return out;
}

std::unique_ptr<const Stmt> Parser::jump(Position at, Flow flow) {
  if (!loops_) fail_at(out_.name, at, "break and continue stand in a loop only");
  return std::make_unique<Jump>(at, flow);
}

std::unique_ptr<const Stmt> Parser::parse_break(Position at) { return jump(at, Flow::kBreak); }
std::unique_ptr<const Stmt> Parser::parse_continue(Position at) { return jump(at, Flow::kContinue); }

Target Parser::one_target(bool attributes) {
  if (skip_operator("(")) {
    Nested nested(*this);
    Target out = target(attributes);
    expect_operator(")");
    return out;
  }
  for (std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
    if (is_name(constant)) fail_here("cannot give '" + token().text + "' a value");
  }
  Target out;
  std::string name = take_name();
  out.name = symbol(name);
  if (attributes && skip_operator(".")) {
    name = take_name();
    out.attribute = symbol(name);
  }
  bound_.insert(name);
  return out;
}

Target Parser::target(bool attributes) {
  Target first = one_target(attributes);
  if (!is_operator(",")) return first;
  Target out;
  out.parts.push_back(std::move(first));
  while (skip_operator(",")) {
    if (is_name("in") || is_operator("=") || is_operator(")")) break;
    out.parts.push_back(one_target(attributes));
  }
  return out;
}

void Parser::signature(MacroBody& macro) {
  expect_operator("(");
  while (!is_operator(")")) {
    if (!macro.parameters.empty()) expect_operator(",");
    std::string name = take_name();
    bound_.insert(name);
    macro.parameters.push_back(symbol(name));
    if (skip_operator("=")) {
      macro.defaults.push_back(expression());
    } else if (!macro.defaults.empty()) {
      fail_here("a parameter without a default after one with a default");
    }
  }
  expect_operator(")");
}

void Parser::macro_body(MacroBody& macro, std::string_view end) {
  macros_.push_back(&macro);
  int loops = std::exchange(loops_, 0);
  macro.body = closed_body(end);
  loops_ = loops;
  macros_.pop_back();
}

}  // namespace juno::tokenizer::jinja
