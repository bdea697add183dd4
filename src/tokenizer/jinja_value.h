// SPDX-License-Identifier: Apache-2.0
// The values a chat template can hold. Lists, dictionaries and objects live in the Heap of one rendering and
// are named by plain pointers, so cycles cost nothing and nothing is destroyed recursively.
#pragma once
#include <concepts>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/jinja_text.h"

namespace juno::tokenizer::jinja {

class Interpreter;
struct List;
class Dict;
class Object;
using TextPtr = std::shared_ptr<const Text>;

// A name or attribute that is not there; `why` is the sentence of the error that using it gives.
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {};

class Value {
 public:
  Value() : v_(None{}) {}
  Value(Undefined u) : v_(std::move(u)) {}
  Value(None n) : v_(n) {}
  template <std::same_as<bool> B>  // exactly bool: a pointer is none
  Value(B b) : v_(b) {}
  Value(int64_t i) : v_(i) {}
  Value(double d) : v_(d) {}
  Value(TextPtr t) : v_(std::move(t)) {}
  Value(List* l) : v_(l) {}
  Value(Dict* d) : v_(d) {}
  Value(Object* o) : v_(o) {}

  template <class T>
  const T* get() const {
    return std::get_if<T>(&v_);
  }
  bool is_undefined() const { return get<Undefined>() != nullptr; }
  bool is_none() const { return get<None>() != nullptr; }
  const Text* text() const { return get<TextPtr>() ? get<TextPtr>()->get() : nullptr; }
  List* list() const { return get<List*>() ? *get<List*>() : nullptr; }
  Dict* dict() const { return get<Dict*>() ? *get<Dict*>() : nullptr; }
  Object* object() const { return get<Object*>() ? *get<Object*>() : nullptr; }
  // The number in an int or a bool.
  std::optional<int64_t> integer() const;
  // The number in an int, a bool or a float.
  std::optional<double> number() const;
  bool truth() const;

 private:
  std::variant<Undefined, None, bool, int64_t, double, TextPtr, List*, Dict*, Object*> v_;
};

// What Python has many types for: a generator can be walked once, a view (of a dictionary) has a length but
// no subscript.
enum class ListKind { kList, kTuple, kRange, kView, kGenerator };

struct List {
  ListKind kind = ListKind::kList;
  std::vector<Value> items;
  std::string label;  // of a range or a view: how it prints, before "("
};

// Keys keep the order of insertion; 1, 1.0 and true are one key, as in Python.
class Dict {
 public:
  using Item = std::pair<Value, Value>;
  const std::vector<Item>& items() const { return items_; }
  size_t size() const { return items_.size(); }
  // Null where the key is not there, or could not be one (a list).
  const Value* find(const Value& key) const;
  const Value* find_text(std::string_view key) const;
  // False where the key cannot be one.
  bool set(const Value& key, Value value);

 private:
  std::vector<Item> items_;
  std::unordered_map<std::string, size_t> index_;
};

// Arguments of a call, before they are matched with names.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// What is neither data nor text: functions, macros, namespaces, the loop.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string describe() const = 0;  // "macro 'f'", as printed between < and >
  virtual std::optional<Value> attribute(Interpreter&, std::string_view) { return std::nullopt; }
  virtual bool set_attribute(Interpreter&, std::string_view, Value) { return false; }
  virtual bool callable() const { return true; }
  virtual Value call(Interpreter&, Args&) = 0;
};

// Python's name of the type, as error messages use it.
std::string_view type_name(const Value& v);

}  // namespace juno::tokenizer::jinja
