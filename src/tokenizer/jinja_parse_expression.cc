// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdlib>
#include <span>

#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_operators.h"
#include "tokenizer/jinja_parser_state.h"

namespace juno::tokenizer::jinja {

namespace {

struct NamedOperator {
  std::string_view sign;
  BinaryOperator run;
};
constexpr NamedOperator kSums[] = {{"+", add}, {"-", subtract}};
constexpr NamedOperator kProducts[] = {{"*", multiply}, {"/", divide}, {"//", floor_divide}, {"%", modulo}};
constexpr NamedOperator kPowers[] = {{"**", power}};
// From the loosest to the tightest; "~" binds between sums and products.
constexpr std::span<const NamedOperator> kLevels[] = {kSums, kProducts, kPowers};

struct NamedComparison {
  std::string_view sign;
  Compare::Operator run;
};
constexpr NamedComparison kComparisons[] = {
    {"==", equal},
    {"!=", [](Interpreter& in, const Value& a, const Value& b) { return !equal(in, a, b); }},
    {"<", less},
    {">", [](Interpreter& in, const Value& a, const Value& b) { return less(in, b, a); }},
    {"<=", [](Interpreter& in, const Value& a, const Value& b) { return less(in, a, b) || equal(in, a, b); }},
    {">=", [](Interpreter& in, const Value& a, const Value& b) { return less(in, b, a) || equal(in, a, b); }},
};
constexpr Compare::Operator kIn = contains;
constexpr Compare::Operator kNotIn = [](Interpreter& in, const Value& a, const Value& b) {
  return !contains(in, a, b);
};

Value constant(std::string_view s) { return TextPtr(std::make_shared<Text>(s)); }

}  // namespace

ExprPtr Parser::expression() {
  Nested nested(*this);
  ExprPtr value = either();
  while (is_name("if")) {
    auto out = std::make_unique<Conditional>(token().at);
    ++at_;
    out->yes = std::move(value);
    out->test = either();
    bool otherwise = skip_name("else");
    if (otherwise) out->no = expression();
    value = std::move(out);
    // "a if b if c …" would nest without end to the left.
    if (!otherwise && is_name("if")) fail_here("a second 'if' without an 'else' between");
  }
  return value;
}

bool Parser::tuple_ends() const {
  return token().type == TokenType::kVariableEnd || token().type == TokenType::kBlockEnd ||
         is_operator(")") || is_name("recursive");
}

ExprPtr Parser::tuple(bool conditional, bool parenthesised) {
  Position at = token().at;
  std::vector<ExprPtr> items;
  bool comma = false;
  while (!tuple_ends()) {
    items.push_back(conditional ? expression() : either());
    if (!is_operator(",")) break;
    comma = true;
    ++at_;
  }
  if (!comma && items.size() == 1) return std::move(items[0]);
  if (items.empty() && !parenthesised) fail_here("expected an expression");
  auto out = std::make_unique<Sequence>(at);
  out->kind = ListKind::kTuple;
  out->items = std::move(items);
  return out;
}

ExprPtr Parser::logic(std::string_view word, ExprPtr (Parser::*operand)()) {
  Position at = token().at;
  ExprPtr first = (this->*operand)();
  if (!is_name(word)) return first;
  auto out = std::make_unique<Logic>(at);
  out->stop_at = word == "or";
  out->operands.push_back(std::move(first));
  while (skip_name(word)) out->operands.push_back((this->*operand)());
  return out;
}

ExprPtr Parser::negation() {
  if (!is_name("not")) return comparison();
  Nested nested(*this);
  auto out = std::make_unique<Unary>(token().at);
  ++at_;
  out->op = [](Interpreter&, const Value& v) { return Value(!v.truth()); };
  out->operand = negation();
  return out;
}

ExprPtr Parser::comparison() {
  auto out = std::make_unique<Compare>(token().at);
  out->first = arithmetic(0);
  while (true) {
    const NamedComparison* found = nullptr;
    for (const NamedComparison& c : kComparisons) {
      if (is_operator(c.sign)) found = &c;
    }
    if (found) {
      ++at_;
      out->rest.emplace_back(found->run, arithmetic(0));
    } else if (skip_name("in")) {
      out->rest.emplace_back(kIn, arithmetic(0));
    } else if (is_name("not") && token(1).type == TokenType::kName && token(1).text == "in") {
      at_ += 2;
      out->rest.emplace_back(kNotIn, arithmetic(0));
    } else {
      break;
    }
  }
  if (out->rest.empty()) return std::move(out->first);
  return out;
}

ExprPtr Parser::operand(int level) {
  if (level == 0) return concatenation();
  return level == 1 ? arithmetic(2) : unary();
}

ExprPtr Parser::arithmetic(int level) {
  auto out = std::make_unique<Arithmetic>(token().at);
  out->first = operand(level);
  auto next = [&]() -> const NamedOperator* {
    for (const NamedOperator& o : kLevels[level]) {
      if (is_operator(o.sign)) return &o;
    }
    return nullptr;
  };
  while (const NamedOperator* found = next()) {
    ++at_;
    out->rest.emplace_back(found->run, operand(level));
  }
  if (out->rest.empty()) return std::move(out->first);
  return out;
}

ExprPtr Parser::concatenation() {
  Position at = token().at;
  ExprPtr first = arithmetic(1);
  if (!is_operator("~")) return first;
  auto out = std::make_unique<Concat>(at);
  out->parts.push_back(std::move(first));
  while (skip_operator("~")) out->parts.push_back(arithmetic(1));
  return out;
}

ExprPtr Parser::unary(bool with_filters) {
  if (!is_operator("-") && !is_operator("+")) return with_suffixes(primary(), with_filters);
  Nested nested(*this);
  auto out = std::make_unique<Unary>(token().at);
  out->op = is_operator("-") ? negate : plus;
  ++at_;
  out->operand = unary(false);
  return with_suffixes(std::move(out), with_filters);
}

ExprPtr Parser::primary() {
  Position at = token().at;
  if (token().type == TokenType::kName) return name_or_constant();
  if (token().type == TokenType::kInteger || token().type == TokenType::kFloat) return number();
  if (token().type == TokenType::kString) {
    std::string value;
    for (; token().type == TokenType::kString; ++at_) value += token().text;
    return std::make_unique<Literal>(at, constant(value));
  }
  if (is_operator("[")) return list();
  if (is_operator("{")) return dict();
  if (!skip_operator("(")) fail_here("expected an expression");
  ExprPtr inner = tuple(true, true);
  expect_operator(")");
  return inner;
}

ExprPtr Parser::name_or_constant() {
  Position at = token().at;
  std::string name = take_name();
  if (name == "true" || name == "True") return std::make_unique<Literal>(at, Value(true));
  if (name == "false" || name == "False") return std::make_unique<Literal>(at, Value(false));
  if (name == "none" || name == "None") return std::make_unique<Literal>(at, Value());
  Symbol s = symbol(name);
  for (MacroBody* macro : macros_) {
    if (name == "varargs") macro->varargs = s;
    if (name == "kwargs") macro->kwargs = s;
    if (name == "caller") macro->caller = s;
  }
  out_.reads.insert(*s);
  return std::make_unique<Name>(at, s);
}

ExprPtr Parser::number() {
  const Token& t = token();
  ++at_;
  if (t.type == TokenType::kFloat)
    return std::make_unique<Literal>(t.at, Value(std::strtod(t.text.c_str(), nullptr)));
  int64_t value = 0;
  auto [end, error] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), value);
  if (error != std::errc() || end != t.text.data() + t.text.size())
    fail_at(out_.name, t.at, "the number does not fit into 64 bits");
  if (t.text.size() > 1 && t.text[0] == '0' && value != 0)
    fail_at(out_.name, t.at, "a number may not start with 0");
  return std::make_unique<Literal>(t.at, Value(value));
}

ExprPtr Parser::list() {
  auto out = std::make_unique<Sequence>(token().at);
  expect_operator("[");
  while (!is_operator("]")) {
    if (!out->items.empty()) expect_operator(",");
    if (is_operator("]")) break;
    out->items.push_back(expression());
  }
  expect_operator("]");
  return out;
}

ExprPtr Parser::dict() {
  auto out = std::make_unique<DictLiteral>(token().at);
  expect_operator("{");
  while (!is_operator("}")) {
    if (!out->items.empty()) expect_operator(",");
    if (is_operator("}")) break;
    ExprPtr key = expression();
    expect_operator(":");
    out->items.emplace_back(std::move(key), expression());
  }
  expect_operator("}");
  return out;
}

ExprPtr Parser::with_suffixes(ExprPtr first, bool with_filters) {
  auto out = std::make_unique<Postfix>(first->at);
  bool filtered = false;  // after a filter only calls, filters and tests follow
  while (true) {
    if (!filtered && is_operator(".")) {
      out->suffixes.push_back(dot());
    } else if (!filtered && is_operator("[")) {
      out->suffixes.push_back(bracket());
    } else if (is_operator("(")) {
      check_call(first, out->suffixes);
      out->suffixes.push_back(call_suffix());
    } else if (with_filters && (is_operator("|") || is_name("is"))) {
      filtered = true;
      out->suffixes.push_back(is_operator("|") ? filter() : test());
    } else {
      break;
    }
  }
  if (out->suffixes.empty()) return first;
  out->first = std::move(first);
  return out;
}

// Remembers which function or method is called here: whether it exists is known at the template's end.
void Parser::check_call(const ExprPtr& first, const std::vector<std::unique_ptr<const Suffix>>& before) {
  if (before.empty()) {
    if (auto* name = dynamic_cast<const Name*>(first.get()))
      called_names_.emplace_back(*name->symbol, name->at);
  } else if (auto* attribute = dynamic_cast<const Attribute*>(before.back().get())) {
    called_methods_.emplace_back(*attribute->name, attribute->at);
  }
}

std::unique_ptr<const Suffix> Parser::dot() {
  ++at_;
  Position at = token().at;
  if (token().type == TokenType::kInteger) {
    auto out = std::make_unique<Subscript>(at);
    out->index = number();
    return out;
  }
  return std::make_unique<Attribute>(at, symbol(take_name()));
}

std::unique_ptr<const Suffix> Parser::bracket() {
  Position at = token().at;
  expect_operator("[");
  ExprPtr first;
  if (!is_operator(":")) first = expression();
  if (skip_operator("]")) {
    auto out = std::make_unique<Subscript>(at);
    out->index = std::move(first);
    return out;
  }
  auto out = std::make_unique<Slice>(at);
  out->start = std::move(first);
  expect_operator(":");
  if (!is_operator(":") && !is_operator("]")) out->stop = expression();
  if (skip_operator(":") && !is_operator("]")) out->step = expression();
  expect_operator("]");
  return out;
}

std::unique_ptr<const Suffix> Parser::call_suffix() {
  auto out = std::make_unique<CallSuffix>(token().at);
  out->arguments = arguments();
  return out;
}

std::vector<std::unique_ptr<const Suffix>> Parser::filter_list(bool first_without_pipe) {
  std::vector<std::unique_ptr<const Suffix>> out;
  if (first_without_pipe) {
    --at_;  // filter() skips a token: the "|" that is not there
    out.push_back(filter());
  }
  while (is_operator("|")) out.push_back(filter());
  return out;
}

std::unique_ptr<const Suffix> Parser::filter() {
  ++at_;
  auto out = std::make_unique<FilterSuffix>(token().at);
  std::string name = take_name();
  out->filter = find_filter(name);
  if (!out->filter) fail_at(out_.name, out->at, "the filter '" + name + "' is not known");
  if (is_operator("(")) out->arguments = arguments();
  check_mapped(name, out->at, out->arguments);
  return out;
}

// map('upper'), select('defined'), selectattr('name', 'equalto', …): the name inside is looked up now.
void Parser::check_mapped(std::string_view filter, Position at, const Arguments& given) const {
  struct Mapping {
    std::string_view filter;
    size_t argument;
    const Builtin* (*find)(std::string_view);
  };
  constexpr Mapping kMappings[] = {{"map", 0, find_filter},
                                   {"select", 0, find_test},
                                   {"reject", 0, find_test},
                                   {"selectattr", 1, find_test},
                                   {"rejectattr", 1, find_test}};
  for (const Mapping& m : kMappings) {
    if (m.filter != filter || given.positional.size() <= m.argument) continue;
    auto* literal = dynamic_cast<const Literal*>(given.positional[m.argument].get());
    const Text* name = literal ? literal->value.text() : nullptr;
    if (name && !m.find(name->bytes()))
      fail_at(out_.name, at, "'" + name->bytes() + "' is not known to " + std::string(filter));
  }
}

std::unique_ptr<const Suffix> Parser::test() {
  auto out = std::make_unique<TestSuffix>(token().at);
  expect_name("is");
  out->negated = skip_name("not");
  Position at = token().at;
  std::string name = take_name();
  out->test = find_test(name);
  if (!out->test) fail_at(out_.name, at, "the test '" + name + "' is not known");
  if (is_operator("(")) {
    out->arguments = arguments();
    if (is_name("is")) fail_here("tests cannot be chained with 'is'");
    return out;
  }
  bool word = token().type == TokenType::kName;
  for (std::string_view keyword : {"else", "or", "and", "if", "is", "in", "not"}) word &= !is_name(keyword);
  bool literal = token().type == TokenType::kString || token().type == TokenType::kInteger ||
                 token().type == TokenType::kFloat || is_operator("[") || is_operator("{");
  if (word || literal) {
    Nested nested(*this);
    out->arguments.positional.push_back(with_suffixes(primary(), false));
  }
  if (is_name("is")) fail_here("tests cannot be chained with 'is'");
  return out;
}

Arguments Parser::arguments() {
  Arguments out;
  expect_operator("(");
  bool first = true;
  while (!is_operator(")")) {
    if (!first) expect_operator(",");
    first = false;
    if (is_operator(")")) break;
    bool named =
        token().type == TokenType::kName && token(1).type == TokenType::kOperator && token(1).text == "=";
    if (named) {
      std::string name = take_name();
      bound_.insert(name);
      ++at_;
      out.named.emplace_back(std::move(name), expression());
    } else if (is_operator("*") && !out.more_positional && !out.more_named) {
      ++at_;
      out.more_positional = expression();
    } else if (is_operator("**") && !out.more_named) {
      ++at_;
      out.more_named = expression();
    } else if (out.named.empty() && !out.more_positional && !out.more_named) {
      out.positional.push_back(expression());
    } else {
      fail_here("a plain argument after a named one");
    }
  }
  expect_operator(")");
  return out;
}

}  // namespace juno::tokenizer::jinja
