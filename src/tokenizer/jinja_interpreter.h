// SPDX-License-Identifier: Apache-2.0
// One rendering: scopes, the heap of its values, its output, and the limits that a hostile template runs
// into.
#pragma once
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja_ast.h"
#include "tokenizer/jinja_value.h"

namespace juno::tokenizer::jinja {

struct Limits {
  int64_t steps = 1'000'000;  // nodes evaluated, items walked
  size_t output = 1 << 20;    // bytes
  int calls = 100;            // macros inside macros
  int depth = 1000;           // nodes inside nodes: what the C++ stack must hold
  size_t memory = 64 << 20;   // bytes of all values alive
  std::chrono::milliseconds time{1000};
};

// Bytes held by a rendering's texts; texts may outlive the interpreter, so they share it.
struct Meter {
  size_t used = 0;
};

struct Scope {
  explicit Scope(Scope* p) : parent(p) {}
  Scope* parent;
  std::vector<std::pair<Symbol, Value>> variables;
};

class Interpreter {
 public:
  Interpreter(const Template& source, Limits limits, std::optional<std::tm> now);

  Value eval(const Expr& e);
  Flow run(const Body& body);
  Text render();

  // The heap. Sizes are checked before anything is allocated.
  Value text(Text t);
  Value text(std::string_view constant) { return text(Text(constant)); }
  List* new_list(ListKind kind = ListKind::kList, std::vector<Value> items = {});
  Dict* new_dict();
  void push(List& list, Value v);
  void set(Dict& dict, const Value& key, Value v);
  template <class T, class... A>
  T* make(A&&... args) {
    take_memory(sizeof(T));
    auto owned = std::make_unique<T>(std::forward<A>(args)...);
    T* object = owned.get();
    objects_.push_back(std::move(owned));
    return object;
  }

  // Names. A scope lives as long as the rendering, since a macro may remember it.
  Value lookup(Symbol name);
  void assign(Symbol name, Value v);
  void define(const std::string& name, Value v);  // in the outermost scope, if the template knows the name
  Scope* scope() { return scope_; }
  template <class F>
  auto in_scope(Scope* parent, F&& body) {
    take_memory(sizeof(Scope));
    Restore<Scope*> back(scope_);
    scope_ = &scopes_.emplace_back(parent);
    return body();
  }

  // Output.
  void emit(const Text& t);
  template <class F>
  Text capture(F&& body) {
    Text buffer;
    Restore<Text*> back(out_);
    out_ = &buffer;
    body();
    return buffer;
  }

  // Limits.
  void spend(int64_t steps);
  void work(size_t bytes);  // bytes looked at: counts towards the clock
  void room(size_t bytes);  // fails where a text of that size may not be made
  struct Depth {
    explicit Depth(Interpreter& in) : in_(in) { in.enter(); }
    ~Depth() { --in_.depth_; }
    Interpreter& in_;
  };
  template <class F>
  auto in_call(F&& body) {
    Restore<int> back(calls_);
    if (++calls_ > limits_.calls) fail("macros call each other more than {} deep", limits_.calls);
    return body();
  }

  // Where errors say they happened.
  void here(Position at) { at_ = at; }
  Position position() const { return at_; }
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> text, A&&... args) const {
    fail_at(template_.name, at_, fmt::format(text, std::forward<A>(args)...));
  }
  Value undefined(std::string why) const {
    return Undefined{std::make_shared<const std::string>(std::move(why))};
  }

  const std::tm& now();

 private:
  template <class T>
  struct Restore {
    explicit Restore(T& v) : variable(v), before(v) {}
    ~Restore() { variable = before; }
    T& variable;
    T before;
  };
  void enter();
  void take_memory(size_t bytes);
  void check_clock();

  const Template& template_;
  Limits limits_;
  std::optional<std::tm> now_;
  std::shared_ptr<Meter> meter_ = std::make_shared<Meter>();
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::vector<std::unique_ptr<Object>> objects_;
  std::deque<Scope> scopes_;
  Scope* scope_;
  Text* out_ = nullptr;
  int64_t steps_ = 0, next_look_ = 0;
  size_t work_ = 0;
  int depth_ = 0, calls_ = 0;
  Position at_;
  std::chrono::steady_clock::time_point deadline_;
};

// The error of raise_exception(): its message is the template's own sentence.
[[noreturn]] void raise_own(const std::string& sentence);

}  // namespace juno::tokenizer::jinja
