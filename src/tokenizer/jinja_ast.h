// SPDX-License-Identifier: Apache-2.0
// A parsed template: nodes that know how to run themselves. Chains of operators, filters and subscripts are
// flat lists, so the tree is only as deep as the template is nested, which the parser bounds.
#pragma once
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tokenizer/jinja_lexer.h"
#include "tokenizer/jinja_value.h"

namespace juno::tokenizer::jinja {

struct Builtin;

// A name, one object for each spelling in a template.
using Symbol = const std::string*;

// What a statement says to the loop around it.
enum class Flow { kNext, kBreak, kContinue };

struct Expr {
  explicit Expr(Position p) : at(p) {}
  virtual ~Expr() = default;
  virtual Value eval(Interpreter&) const = 0;
  Position at;
};
using ExprPtr = std::unique_ptr<const Expr>;

struct Stmt {
  explicit Stmt(Position p) : at(p) {}
  virtual ~Stmt() = default;
  virtual Flow run(Interpreter&) const = 0;
  Position at;
};
using Body = std::vector<std::unique_ptr<const Stmt>>;

struct Template {
  std::string name, source;
  std::unordered_set<std::string> symbols;
  std::unordered_set<std::string> reads;  // names whose value is asked for
  Body body;
};

// ---- expressions

struct Literal : Expr {
  Literal(Position p, Value v) : Expr(p), value(std::move(v)) {}
  Value eval(Interpreter&) const override { return value; }
  Value value;
};

struct Name : Expr {
  Name(Position p, Symbol s) : Expr(p), symbol(s) {}
  Value eval(Interpreter&) const override;
  Symbol symbol;
};

struct Sequence : Expr {  // a list or a tuple
  using Expr::Expr;
  Value eval(Interpreter&) const override;
  ListKind kind = ListKind::kList;
  std::vector<ExprPtr> items;
};

struct DictLiteral : Expr {
  using Expr::Expr;
  Value eval(Interpreter&) const override;
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};

struct Logic : Expr {  // a or b or c; a and b and c: the operand that decides
  using Expr::Expr;
  Value eval(Interpreter&) const override;
  bool stop_at = true;  // the truth that ends the evaluation: true for "or"
  std::vector<ExprPtr> operands;
};

struct Unary : Expr {
  using Operator = Value (*)(Interpreter&, const Value&);
  using Expr::Expr;
  Value eval(Interpreter&) const override;
  Operator op = nullptr;
  ExprPtr operand;
};

using BinaryOperator = Value (*)(Interpreter&, const Value&, const Value&);

struct Arithmetic : Expr {  // a + b - c, from left to right
  using Expr::Expr;
  Value eval(Interpreter&) const override;
  ExprPtr first;
  std::vector<std::pair<BinaryOperator, ExprPtr>> rest;
};

struct Compare : Expr {  // a < b < c: each neighbour pair
  using Operator = bool (*)(Interpreter&, const Value&, const Value&);
  using Expr::Expr;
  Value eval(Interpreter&) const override;
  ExprPtr first;
  std::vector<std::pair<Operator, ExprPtr>> rest;
};

struct Concat : Expr {  // a ~ b ~ c
  using Expr::Expr;
  Value eval(Interpreter&) const override;
  std::vector<ExprPtr> parts;
};

struct Conditional : Expr {  // yes if test else no; without else undefined
  using Expr::Expr;
  Value eval(Interpreter&) const override;
  ExprPtr test, yes, no;
};

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional, more_named;  // *list, **dict
  Args eval(Interpreter&) const;
};

// What can follow a value: .name [index] (arguments) |filter "is" test.
struct Suffix {
  explicit Suffix(Position p) : at(p) {}
  virtual ~Suffix() = default;
  virtual Value apply(Interpreter&, const Value&) const = 0;
  Position at;
};

struct Postfix : Expr {
  using Expr::Expr;
  Value eval(Interpreter&) const override;
  ExprPtr first;
  std::vector<std::unique_ptr<const Suffix>> suffixes;
};

struct Attribute : Suffix {
  Attribute(Position p, Symbol s) : Suffix(p), name(s) {}
  Value apply(Interpreter&, const Value&) const override;
  Symbol name;
};

struct Subscript : Suffix {
  using Suffix::Suffix;
  Value apply(Interpreter&, const Value&) const override;
  ExprPtr index;
};

struct Slice : Suffix {
  using Suffix::Suffix;
  Value apply(Interpreter&, const Value&) const override;
  ExprPtr start, stop, step;  // each may be null
};

struct CallSuffix : Suffix {
  using Suffix::Suffix;
  Value apply(Interpreter&, const Value&) const override;
  Arguments arguments;
};

struct FilterSuffix : Suffix {
  using Suffix::Suffix;
  Value apply(Interpreter&, const Value&) const override;
  const Builtin* filter = nullptr;
  Arguments arguments;
};

struct TestSuffix : Suffix {
  using Suffix::Suffix;
  Value apply(Interpreter&, const Value&) const override;
  const Builtin* test = nullptr;
  bool negated = false;
  Arguments arguments;
};

// ---- statements

struct Data : Stmt {  // the template's own text
  Data(Position p, Text t) : Stmt(p), text(std::move(t)) {}
  Flow run(Interpreter&) const override;
  Text text;
};

struct Print : Stmt {
  using Stmt::Stmt;
  Flow run(Interpreter&) const override;
  ExprPtr value;
};

struct If : Stmt {
  using Stmt::Stmt;
  Flow run(Interpreter&) const override;
  std::vector<std::pair<ExprPtr, Body>> branches;  // the test of else is null
};

// Where set and for put a value: a name, an attribute of a namespace, or several targets.
struct Target {
  Symbol name = nullptr, attribute = nullptr;
  std::vector<Target> parts;
  void assign(Interpreter&, const Value&) const;
};

struct For : Stmt {
  using Stmt::Stmt;
  Flow run(Interpreter&) const override;
  std::vector<Value> chosen(Interpreter&) const;
  Target target;
  ExprPtr sequence, filter;  // filter may be null
  Body body, otherwise;
  Symbol loop = nullptr;
};

struct Set : Stmt {
  using Stmt::Stmt;
  Flow run(Interpreter&) const override;
  Target target;
  ExprPtr value;
};

struct SetBlock : Stmt {  // {% set x | filters %}…{% endset %}
  using Stmt::Stmt;
  Flow run(Interpreter&) const override;
  Target target;
  std::vector<std::unique_ptr<const Suffix>> filters;
  Body body;
};

struct FilterBlock : Stmt {
  using Stmt::Stmt;
  Flow run(Interpreter&) const override;
  std::vector<std::unique_ptr<const Suffix>> filters;
  Body body;
};

struct With : Stmt {  // also {% generation %}, which only marks its body
  using Stmt::Stmt;
  Flow run(Interpreter&) const override;
  std::vector<std::pair<Target, ExprPtr>> values;
  Body body;
};

struct MacroBody {
  std::string name;
  Position at;
  std::vector<Symbol> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  Symbol varargs = nullptr, kwargs = nullptr, caller = nullptr;  // where the body names them
};

struct Macro : Stmt {
  using Stmt::Stmt;
  Flow run(Interpreter&) const override;
  Symbol name = nullptr;
  MacroBody macro;
};

struct CallBlock : Stmt {  // {% call(a) f(x) %}…{% endcall %}: f's caller(a) gives the body
  using Stmt::Stmt;
  Flow run(Interpreter&) const override;
  ExprPtr function;
  Arguments arguments;
  MacroBody caller;
};

struct Jump : Stmt {  // break, continue
  Jump(Position p, Flow f) : Stmt(p), flow(f) {}
  Flow run(Interpreter&) const override { return flow; }
  Flow flow;
};

}  // namespace juno::tokenizer::jinja
