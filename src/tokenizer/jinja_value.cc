// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja_value.h"

#include <cmath>

namespace juno::tokenizer::jinja {

std::optional<int64_t> Value::integer() const {
  if (auto* i = get<int64_t>()) return *i;
  if (auto* b = get<bool>()) return *b ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (auto* d = get<double>()) return *d;
  if (auto i = integer()) return static_cast<double>(*i);
  return std::nullopt;
}

bool Value::truth() const {
  if (auto n = number()) return *n != 0;
  if (auto* t = text()) return !t->empty();
  if (auto* l = list()) return l->kind == ListKind::kGenerator || !l->items.empty();
  if (auto* d = dict()) return d->size() > 0;
  return object() != nullptr;
}

namespace {

constexpr size_t kMaxKey = 1 << 16;  // bytes of a tuple's spelling; text keys are as long as they are

// One spelling for all keys that are equal in Python; false where the value cannot be a key.
bool spell_key(const Value& v, std::string& out, int depth = 0) {
  if (auto* t = v.text()) {
    out += 's' + std::to_string(t->size()) + ':' + t->bytes();
  } else if (auto n = v.number()) {
    if (auto i = v.integer()) {
      out += 'i' + std::to_string(*i);
    } else if (std::floor(*n) == *n && std::fabs(*n) < 9e15) {
      out += 'i' + std::to_string(static_cast<int64_t>(*n));
    } else {
      out += 'f' + std::to_string(std::hash<double>()(*n));
    }
  } else if (v.is_none()) {
    out += 'n';
  } else if (auto* l = v.list(); l && l->kind == ListKind::kTuple && depth < 8) {
    out += '(';
    for (const Value& item : l->items) {
      if (out.size() > kMaxKey || !spell_key(item, out, depth + 1)) return false;
    }
    out += ')';
  } else {
    return false;
  }
  return true;
}

std::string spell_text(std::string_view key) {
  return 's' + std::to_string(key.size()) + ':' + std::string(key);
}

}  // namespace

const Value* Dict::find(const Value& key) const {
  std::string spelled;
  if (!spell_key(key, spelled)) return nullptr;
  auto at = index_.find(spelled);
  return at == index_.end() ? nullptr : &items_[at->second].second;
}

const Value* Dict::find_text(std::string_view key) const {
  auto at = index_.find(spell_text(key));
  return at == index_.end() ? nullptr : &items_[at->second].second;
}

bool Dict::set(const Value& key, Value value) {
  std::string spelled;
  if (!spell_key(key, spelled)) return false;
  auto [at, fresh] = index_.try_emplace(std::move(spelled), items_.size());
  if (fresh) {
    items_.emplace_back(key, std::move(value));
  } else {
    items_[at->second].second = std::move(value);
  }
  return true;
}

std::string_view type_name(const Value& v) {
  if (v.is_undefined()) return "undefined";
  if (v.is_none()) return "NoneType";
  if (v.get<bool>()) return "bool";
  if (v.get<int64_t>()) return "int";
  if (v.get<double>()) return "float";
  if (v.text()) return "str";
  if (v.dict()) return "dict";
  if (v.object()) return "object";
  constexpr std::string_view kNames[] = {"list", "tuple", "range", "dict view", "generator"};
  return kNames[static_cast<int>(v.list()->kind)];
}

}  // namespace juno::tokenizer::jinja
