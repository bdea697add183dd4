// SPDX-License-Identifier: Apache-2.0
#include "ops/host_device.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/checked.h"

namespace juno::ops {
namespace {

constexpr size_t kAlign = 64;

// Lies just below the aligned address.
struct Block {
  void* raw;
  size_t bytes;
};

// Only activations, indices and the cache are copied; weights are uploaded.
size_t tensor_bytes(const Tensor& x) {
  return static_cast<size_t>(x.shape.size()) * (x.dtype == DType::kF16 ? sizeof(uint16_t) : sizeof(float));
}

}  // namespace

// calloc leaves large zeroed memory to the kernel.
Result<void*> HostDevice::allocate(size_t bytes) {
  const auto total = checked_add(bytes, kAlign + sizeof(Block));
  void* raw = total ? std::calloc(1, *total) : nullptr;
  if (!raw)
    return tl::unexpected(
        Error(Code::kDevice, fmt::format("[ops] the host has no {} bytes of memory", bytes)));
  const uintptr_t start = reinterpret_cast<uintptr_t>(raw) + sizeof(Block);
  auto* memory = reinterpret_cast<char*>((start + kAlign - 1) / kAlign * kAlign);
  const Block block{raw, bytes};
  std::memcpy(memory - sizeof block, &block, sizeof block);
  hold(bytes);
  return memory;
}

void HostDevice::hold(uint64_t bytes) {
  held_ += bytes;
  peak_ = std::max(peak_, held_);
}

void HostDevice::release(void* memory) {
  if (!memory) return;
  Block block;
  std::memcpy(&block, static_cast<char*>(memory) - sizeof block, sizeof block);
  held_ -= block.bytes;
  std::free(block.raw);
}

void HostDevice::write(const Tensor& to, const void* from) { std::memcpy(to.data, from, tensor_bytes(to)); }

void HostDevice::read(void* to, const Tensor& from) { std::memcpy(to, from.data, tensor_bytes(from)); }

}  // namespace juno::ops
