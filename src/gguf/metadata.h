// SPDX-License-Identifier: Apache-2.0
// The keys and values of a GGUF file: views of the file's bytes, typed when they are asked for.
#pragma once
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace juno::gguf {

enum class ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};
inline constexpr uint32_t kValueTypes = 13;

std::string_view name_of(ValueType type);  // "u32", "string", "array" …
uint64_t least_size(ValueType type);  // bytes of the smallest value: a number's width, 8 for "", 12 for []

// One value. An array is a range of Values: for (Value token : *metadata.find("tokenizer.ggml.tokens")) …
struct Value {
  class Iterator;

  ValueType type = ValueType::kU8;
  ValueType item = ValueType::kU8;  // what an array holds
  uint64_t count = 0;               // how many an array holds
  std::span<const uint8_t>
      bytes;  // a number as it is stored, a string's characters, an array's items as stored

  // T: bool, an integer, float, double, std::string_view, std::string or a std::vector of these. Integers are
  // converted to any integer type that can hold the number, f32 to double, nothing else: nullopt.
  template <class T>
  std::optional<T> as() const;

  Iterator begin() const;  // an empty range for anything but an array
  Iterator end() const;

 private:
  template <class T>
  T stored() const {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::optional<uint64_t> natural() const;  // of the unsigned types
  std::optional<int64_t> integer() const;   // of the signed types
};

// Walks an array whose bytes have been checked. [count items]
class Value::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;
  using pointer = const Value*;
  using reference = Value;

  Iterator(ValueType item, uint64_t left, const uint8_t* at) : item_(item), left_(left), at_(at) {}
  Value operator*() const;
  Iterator& operator++();
  bool operator==(const Iterator& other) const { return left_ == other.left_; }

 private:
  ValueType item_;
  uint64_t left_;
  const uint8_t* at_;
};

class Metadata {
 public:
  struct Entry {
    std::string_view key;
    Value value;
  };

  Metadata() = default;
  // Throws when a key is given twice. `file` is what messages call the file.
  Metadata(std::string file, std::vector<Entry> entries);

  std::span<const Entry> entries() const { return entries_; }  // in the file's order
  const Value* find(std::string_view key) const;               // null when absent

  // Both throw Error with the key's name, so call them under guard(): get when the key is there with a value
  // that is no T (nullopt only means absent), require also when it is not there.
  template <class T>
  std::optional<T> get(std::string_view key) const {
    const Value* value = find(key);
    if (!value) return std::nullopt;
    std::optional<T> result = value->as<T>();
    if (!result) mismatch(key, *value, expected<T>());
    return result;
  }
  template <class T>
  T require(std::string_view key) const {
    std::optional<T> result = get<T>(key);
    if (!result) fail(Code::kBadData, "[gguf] {}: the key {} is missing", file_, key);
    return std::move(*result);
  }

 private:
  template <class T>
  static std::string expected();
  [[noreturn]] void mismatch(std::string_view key, const Value& value, const std::string& expected) const;

  std::string file_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> order_;  // of entries_, sorted by key
};

// The value as a line of text for people: at most `limit` bytes of a string, the first items of an array.
std::string shown(const Value& value, size_t limit = 60);

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
std::optional<T> Value::as() const {
  if constexpr (std::is_same_v<T, bool>) {
    if (type == ValueType::kBool) return bytes[0] != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (const auto n = natural(); n && std::in_range<T>(*n)) return T(*n);
    if (const auto n = integer(); n && std::in_range<T>(*n)) return T(*n);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (type == ValueType::kF32) return stored<float>();
    if (type == ValueType::kF64 && sizeof(T) == sizeof(double)) return T(stored<double>());
  } else if constexpr (kIsVector<T>) {
    if (type != ValueType::kArray) return std::nullopt;
    T items;
    items.reserve(count);
    for (const Value& value : *this) {
      auto converted = value.template as<typename T::value_type>();
      if (!converted) return std::nullopt;
      items.push_back(std::move(*converted));
    }
    return items;
  } else {
    static_assert(std::is_constructible_v<T, const char*, size_t>, "a type that metadata can be read as");
    if (type == ValueType::kString) return T(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return std::nullopt;
}

template <class T>
std::string Metadata::expected() {
  if constexpr (std::is_same_v<T, bool>) {
    return "a bool";
  } else if constexpr (std::is_integral_v<T>) {
    return fmt::format("an integer from {} to {}", +std::numeric_limits<T>::min(),
                       +std::numeric_limits<T>::max());
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == sizeof(float) ? "an f32" : "an f32 or f64";
  } else if constexpr (kIsVector<T>) {
    return "an array, each item " + expected<typename T::value_type>();
  } else {
    return "a string";
  }
}

}  // namespace juno::gguf
