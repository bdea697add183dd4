// SPDX-License-Identifier: Apache-2.0
#include "gguf/metadata.h"

#include <algorithm>
#include <numeric>

#include "gguf/text.h"

namespace juno::gguf {
namespace {

constexpr struct {
  std::string_view name;
  uint64_t least;
} kTypes[kValueTypes] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
                         {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 8}, {"array", 12},
                         {"u64", 8}, {"i64", 8}, {"f64", 8}};

template <class T>
T number(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The value that begins at `at`, and where it ends. Its bytes have been checked by the parser.
Value stored_value(ValueType type, const uint8_t* at, const uint8_t** end) {
  Value value{.type = type};
  uint64_t n = least_size(type);
  if (type == ValueType::kString) {
    n = number<uint64_t>(at);
    at += 8;
  } else if (type == ValueType::kArray) {
    value.item = ValueType(number<uint32_t>(at));
    value.count = number<uint64_t>(at + 4);
    at += 12;
    const uint8_t* last = at;
    if (value.item == ValueType::kString || value.item == ValueType::kArray) {
      for (uint64_t i = 0; i < value.count; i++) stored_value(value.item, last, &last);
    } else {
      last += value.count * least_size(value.item);
    }
    n = uint64_t(last - at);
  }
  value.bytes = {at, n};
  *end = at + n;
  return value;
}

}  // namespace

std::string_view name_of(ValueType type) { return kTypes[size_t(type)].name; }
uint64_t least_size(ValueType type) { return kTypes[size_t(type)].least; }

Value::Iterator Value::begin() const { return {item, type == ValueType::kArray ? count : 0, bytes.data()}; }
Value::Iterator Value::end() const { return {item, 0, nullptr}; }

Value Value::Iterator::operator*() const {
  const uint8_t* end;
  return stored_value(item_, at_, &end);
}

Value::Iterator& Value::Iterator::operator++() {
  stored_value(item_, at_, &at_);
  left_--;
  return *this;
}

std::optional<uint64_t> Value::natural() const {
  if (type == ValueType::kU8) return stored<uint8_t>();
  if (type == ValueType::kU16) return stored<uint16_t>();
  if (type == ValueType::kU32) return stored<uint32_t>();
  if (type == ValueType::kU64) return stored<uint64_t>();
  return std::nullopt;
}

std::optional<int64_t> Value::integer() const {
  if (type == ValueType::kI8) return stored<int8_t>();
  if (type == ValueType::kI16) return stored<int16_t>();
  if (type == ValueType::kI32) return stored<int32_t>();
  if (type == ValueType::kI64) return stored<int64_t>();
  return std::nullopt;
}

Metadata::Metadata(std::string file, std::vector<Entry> entries)
    : file_(std::move(file)), entries_(std::move(entries)), order_(entries_.size()) {
  std::iota(order_.begin(), order_.end(), 0u);
  const auto key = [&](uint32_t i) { return entries_[i].key; };
  std::ranges::sort(order_, {}, key);
  const auto twice = std::ranges::adjacent_find(order_, {}, key);
  if (twice != order_.end()) fail(Code::kBadData, "[gguf] {}: the key {} is given twice", file_, key(*twice));
}

const Value* Metadata::find(std::string_view key) const {
  const auto place = std::ranges::lower_bound(order_, key, {}, [&](uint32_t i) { return entries_[i].key; });
  if (place == order_.end() || entries_[*place].key != key) return nullptr;
  return &entries_[*place].value;
}

void Metadata::mismatch(std::string_view key, const Value& value, const std::string& expected) const {
  const std::string found = value.type == ValueType::kArray
                                ? fmt::format("an array of {} {}", value.count, name_of(value.item))
                                : fmt::format("{} ({})", shown(value), name_of(value.type));
  fail(Code::kBadData, "[gguf] {}: the key {} is {}, expected {}", file_, key, found, expected);
}

std::string shown(const Value& value, size_t limit) {
  if (const auto n = value.as<uint64_t>()) return std::to_string(*n);
  if (const auto n = value.as<int64_t>()) return std::to_string(*n);
  if (value.type == ValueType::kF32) return fmt::format("{}", *value.as<float>());
  if (const auto x = value.as<double>()) return fmt::format("{}", *x);
  if (const auto yes = value.as<bool>()) return *yes ? "true" : "false";
  if (const auto text = value.as<std::string_view>()) return shown(*text, limit);
  std::string out = "[";
  for (const Value& item : value) {
    if (out.size() >= limit) {
      out += ", …";
      break;
    }
    out += (out.size() > 1 ? ", " : "") + shown(item, limit - out.size());
  }
  return out + "]";
}

}  // namespace juno::gguf
