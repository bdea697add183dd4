// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja_interpreter.h"

#include "base/error.h"
#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_operators.h"

namespace juno::tokenizer::jinja {

namespace {
constexpr int64_t kStepsBetweenLooks = 256;
constexpr size_t kWorkBetweenLooks = 1 << 20;
}  // namespace

void raise_own(const std::string& sentence) { throw Error(Code::kBadData, sentence); }

Interpreter::Interpreter(const Template& source, Limits limits, std::optional<std::tm> now)
    : template_(source),
      limits_(limits),
      now_(now),
      deadline_(std::chrono::steady_clock::now() + limits.time) {
  scope_ = &scopes_.emplace_back(nullptr);
  define_functions(*this);
}

Value Interpreter::eval(const Expr& e) {
  Depth deeper(*this);
  at_ = e.at;
  return e.eval(*this);
}

Flow Interpreter::run(const Body& body) {
  Depth deeper(*this);
  for (const auto& statement : body) {
    spend(1);
    at_ = statement->at;
    if (Flow flow = statement->run(*this); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Text Interpreter::render() {
  return in_scope(scope_, [&] { return capture([&] { run(template_.body); }); });
}

Value Interpreter::text(Text t) {
  room(t.size());
  size_t bytes = t.size() + t.untrusted().size() * sizeof(Text::Range) + sizeof(Text);
  take_memory(bytes);
  work(t.size());
  return TextPtr(new Text(std::move(t)), [meter = meter_, bytes](const Text* p) {
    meter->used -= bytes;
    delete p;
  });
}

List* Interpreter::new_list(ListKind kind, std::vector<Value> items) {
  take_memory(sizeof(List) + items.size() * sizeof(Value));
  spend(static_cast<int64_t>(items.size() / 8));
  lists_.push_back({kind, std::move(items), ""});
  return &lists_.back();
}

Dict* Interpreter::new_dict() {
  take_memory(sizeof(Dict));
  return &dicts_.emplace_back();
}

void Interpreter::push(List& list, Value v) {
  take_memory(2 * sizeof(Value));
  list.items.push_back(std::move(v));
}

void Interpreter::set(Dict& dict, const Value& key, Value v) {
  take_memory(4 * sizeof(Value) + (key.text() ? key.text()->size() : 0));
  if (!dict.set(key, std::move(v))) fail("a {} cannot be the key of a dictionary", type_name(key));
}

Value Interpreter::lookup(Symbol name) {
  for (const Scope* s = scope_; s; s = s->parent) {
    for (auto v = s->variables.rbegin(); v != s->variables.rend(); ++v) {
      if (v->first == name) return v->second;
    }
  }
  return undefined("'" + *name + "' is undefined");
}

void Interpreter::assign(Symbol name, Value v) {
  for (auto& [known, value] : scope_->variables) {
    if (known == name) {
      value = std::move(v);
      return;
    }
  }
  take_memory(2 * sizeof(Value));
  scope_->variables.emplace_back(name, std::move(v));
}

void Interpreter::define(const std::string& name, Value v) {
  auto symbol = template_.symbols.find(name);
  if (symbol != template_.symbols.end()) assign(&*symbol, std::move(v));
}

void Interpreter::emit(const Text& t) {
  if (out_->size() + t.size() > limits_.output) fail("the output is longer than {} bytes", limits_.output);
  work(t.size());
  out_->append(t);
}

void Interpreter::enter() {
  spend(1);
  if (depth_ >= limits_.depth) fail("the evaluation is nested more than {} deep", limits_.depth);
  ++depth_;
}

void Interpreter::spend(int64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.steps) fail("the template takes more than {} steps", limits_.steps);
  if (steps_ < next_look_) return;
  next_look_ = steps_ + kStepsBetweenLooks;
  check_clock();
}

void Interpreter::work(size_t bytes) {
  work_ += bytes;
  if (work_ < kWorkBetweenLooks) return;
  work_ = 0;
  check_clock();
}

void Interpreter::room(size_t bytes) {
  if (bytes > limits_.memory / 4)
    fail("a text of {} bytes is longer than the limit of {}", bytes, limits_.memory / 4);
}

void Interpreter::check_clock() {
  if (std::chrono::steady_clock::now() > deadline_) {
    fail("the template takes longer than {} ms", limits_.time.count());
  }
}

void Interpreter::take_memory(size_t bytes) {
  if (bytes > limits_.memory || meter_->used > limits_.memory - bytes) {
    fail("the values of the template take more than {} bytes", limits_.memory);
  }
  meter_->used += bytes;
}

const std::tm& Interpreter::now() {
  if (!now_) {
    std::time_t t = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    now_.emplace();
    localtime_r(&t, &*now_);
  }
  return *now_;
}

}  // namespace juno::tokenizer::jinja
