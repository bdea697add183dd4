// SPDX-License-Identifier: Apache-2.0
// The objects of a rendering: loop, macros, namespaces, bound methods, cycler and joiner.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja_builtins.h"

namespace juno::tokenizer::jinja {

class LoopObject : public Object {
 public:
  explicit LoopObject(const List& items) : items_(items.items) {}
  std::string describe() const override;
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  bool callable() const override { return false; }
  Value call(Interpreter& in, Args& args) override;

  size_t index = 0;  // from 0; the number of items when the loop is over

 private:
  friend struct LoopFunctions;
  const std::vector<Value>& items_;
  std::optional<Value> last_change_;
};

class MacroObject : public Object {
 public:
  MacroObject(const MacroBody& macro, Scope* scope) : macro_(macro), scope_(scope) {}
  std::string describe() const override { return "Macro '" + macro_.name + "'"; }
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  Value call(Interpreter& in, Args& args) override;

 private:
  void bind(Interpreter& in, Args& args);
  const MacroBody& macro_;
  Scope* scope_;
};

class Namespace : public Object {
 public:
  explicit Namespace(Dict* values) : values_(values) {}
  std::string describe() const override { return "Namespace"; }
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  bool set_attribute(Interpreter& in, std::string_view name, Value v) override;
  bool callable() const override { return false; }
  Value call(Interpreter& in, Args& args) override;

 private:
  Dict* values_;
};

// A function, a filter's name as a value, or a method with its receiver.
class BoundBuiltin : public Object {
 public:
  BoundBuiltin(const Builtin& builtin, Value self) : builtin_(builtin), self_(std::move(self)) {}
  std::string describe() const override { return "function " + std::string(builtin_.name); }
  Value call(Interpreter& in, Args& args) override { return call_builtin(in, builtin_, self_, args); }

 private:
  const Builtin& builtin_;
  Value self_;
};

class Cycler : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  std::string describe() const override { return "Cycler"; }
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  bool callable() const override { return false; }
  Value call(Interpreter& in, Args& args) override;
  Value step();
  void reset() { at_ = 0; }

 private:
  std::vector<Value> items_;
  size_t at_ = 0;
};

class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string describe() const override { return "Joiner"; }
  Value call(Interpreter& in, Args& args) override;

 private:
  Value separator_;
  bool used_ = false;
};

}  // namespace juno::tokenizer::jinja
