// SPDX-License-Identifier: Apache-2.0
// Any bytes at all, opened as GGUF and as safetensors, and everything that was handed out touched.
#include <cstring>
#include <memory>

#include "gguf/reader.h"
#include "gguf/safetensors.h"

namespace {

uint64_t touch(std::span<const uint8_t> bytes) {
  uint64_t sum = 0;
  for (uint8_t b : bytes) sum += b;
  return sum;
}

uint64_t touch(const juno::gguf::Reader& reader) {
  uint64_t sum = reader.tensor_bytes();
  for (const auto& entry : reader.metadata().entries()) {
    sum += juno::gguf::shown(entry.value).size() + entry.key.size();
    for (const auto& item : entry.value) sum += touch(item.bytes);
  }
  for (const auto& tensor : reader.tensors())
    sum += touch({tensor.data, tensor.bytes}) + (reader.tensor(tensor.name) != nullptr);
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto copy = std::make_unique<uint8_t[]>(size);  // aligned, and its end is watched
  if (size > 0) std::memcpy(copy.get(), data, size);
  [[maybe_unused]] volatile uint64_t sink = 0;
  if (const auto reader = juno::gguf::Reader::open_memory({copy.get(), size}, "fuzz", {}))
    sink = touch(*reader);
  if (const auto file = juno::gguf::Safetensors::open_memory({copy.get(), size}, "fuzz"))
    for (const auto& tensor : file->tensors()) sink = touch(tensor.data);
  return 0;
}
