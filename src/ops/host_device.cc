// SPDX-License-Identifier: Apache-2.0
#include "ops/host_device.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/checked.h"

namespace juno::ops {
namespace {

constexpr size_t kAlign = 64;

// Only activations, indices and the cache are copied; weights are uploaded.
size_t tensor_bytes(const Tensor& x) {
  return static_cast<size_t>(x.shape.size()) * (x.dtype == DType::kF16 ? sizeof(uint16_t) : sizeof(float));
}

}  // namespace

// calloc leaves large zeroed memory to the kernel; what it returned is kept just below the aligned address.
Result<void*> HostDevice::allocate(size_t bytes) {
  const auto total = checked_add(bytes, kAlign + sizeof(void*));
  void* raw = total ? std::calloc(1, *total) : nullptr;
  if (!raw)
    return tl::unexpected(
        Error(Code::kDevice, fmt::format("[ops] the host has no {} bytes of memory", bytes)));
  const uintptr_t start = reinterpret_cast<uintptr_t>(raw) + sizeof(void*);
  auto* memory = reinterpret_cast<char*>((start + kAlign - 1) / kAlign * kAlign);
  std::memcpy(memory - sizeof(void*), &raw, sizeof raw);
  return memory;
}

void HostDevice::release(void* memory) {
  if (!memory) return;
  void* raw;
  std::memcpy(&raw, static_cast<char*>(memory) - sizeof(void*), sizeof raw);
  std::free(raw);
}

void HostDevice::write(const Tensor& to, const void* from) { std::memcpy(to.data, from, tensor_bytes(to)); }

void HostDevice::read(void* to, const Tensor& from) { std::memcpy(to, from.data, tensor_bytes(from)); }

}  // namespace juno::ops
