// SPDX-License-Identifier: Apache-2.0
// Writer: a GGUF v3 file, front to back, under a temporary name that becomes `path` when it is complete.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "gguf/metadata.h"

namespace juno::gguf {

// Only the head is kept in memory. First every key and tensor is declared, then the data of all tensors
// written in that order, in pieces of any size:
//   writer.put("general.architecture", "llama"); writer.declare("output_norm.weight", 0, dims);
//   writer.write(bytes); writer.finish();
// A Writer that was not finished leaves nothing behind.
class Writer {
 public:
  // Errors: kFailed when the temporary file cannot be made; kUsage for an alignment that readers refuse.
  static Result<Writer> create(const std::string& path, uint32_t alignment = 32);

  Writer(Writer&& other) noexcept;
  Writer& operator=(Writer&&) = delete;
  ~Writer();

  // T: bool, an integer, float, double, text, or a std::vector of these or of such vectors. The stored type
  // is T's own. general.alignment is written by the writer itself.
  template <class T>
  Result<void> put(std::string_view key, const T& value) {
    std::string bytes;
    append(bytes, value);
    return put_bytes(key, type_of<T>(), bytes);
  }
  Result<void> put(std::string_view key, const Value& value);  // as another file has it

  // dims: 1 to 4, dims[0] is a row. The size of the data follows from the type, an id of kTensorTypes.
  Result<void> declare(std::string_view name, uint32_t type, std::span<const uint64_t> dims);

  // The next bytes of the tensors' data; padding between tensors is the writer's.
  Result<void> write(std::span<const uint8_t> bytes);

  // Completes the file and gives it its name. An error when data is missing.
  Result<void> finish();

 private:
  Writer() = default;
  void write_head();
  void pad();
  void emit(std::span<const uint8_t> bytes);
  void check_declaring() const;
  Result<void> put_bytes(std::string_view key, ValueType type, std::string_view bytes);

  template <class T>
  static constexpr ValueType type_of();
  template <class T>
  static void append(std::string& out, const T& value);
  static void append_text(std::string& out, std::string_view text);

  std::string path_, temporary_;
  int fd_ = -1;
  uint32_t alignment_ = 32;
  std::string keys_, tensors_;  // the encoded entries
  uint64_t n_keys_ = 0;
  std::unordered_set<std::string> key_names_, tensor_names_;
  std::vector<uint64_t> sizes_;  // of each tensor's data
  uint64_t next_offset_ = 0;     // where the next declared tensor's data goes
  bool head_written_ = false;
  size_t tensor_ = 0;       // the one being written
  uint64_t in_tensor_ = 0;  // its bytes so far
  uint64_t at_ = 0;         // bytes in the file
};

template <class T>
constexpr ValueType Writer::type_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return ValueType::kBool;
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? ValueType::kF32 : ValueType::kF64;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr ValueType kUnsigned[] = {ValueType::kU8, ValueType::kU16, ValueType::kU32, ValueType::kU64};
    constexpr ValueType kSigned[] = {ValueType::kI8, ValueType::kI16, ValueType::kI32, ValueType::kI64};
    constexpr int kLog = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[kLog] : kUnsigned[kLog];
  } else if constexpr (kIsVector<T>) {
    return ValueType::kArray;
  } else {
    static_assert(std::is_convertible_v<const T&, std::string_view>, "a type that metadata can hold");
    return ValueType::kString;
  }
}

template <class T>
void Writer::append(std::string& out, const T& value) {
  const auto raw = [&](const auto& number) {
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  if constexpr (kIsVector<T>) {
    using Item = typename T::value_type;
    raw(uint32_t(type_of<Item>()));
    raw(uint64_t(value.size()));
    for (const Item& item : value) append<Item>(out, item);
  } else if constexpr (std::is_arithmetic_v<T>) {
    raw(value);
  } else {
    append_text(out, value);
  }
}

}  // namespace juno::gguf
