// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backend/gpu/runtime.h"
#include "base/error.h"

namespace juno::gpu::host {
namespace {

constexpr int kNothing = 0xff;                // NaN as f32 and f16, -1 as an integer
constexpr size_t kBehind = kAllocationAlign;  // bytes behind each end, which stay as they are

bool is_nothing(uintptr_t begin, size_t bytes) {
  const auto* at = reinterpret_cast<const unsigned char*>(begin);
  return std::all_of(at, at + bytes, [](unsigned char byte) { return byte == kNothing; });
}

}  // namespace

Memory::~Memory() {
  for (const Places* places : {&taken_, &free_})
    for (const auto& [begin, bytes] : *places) std::free(reinterpret_cast<void*>(begin));
}

void* Memory::take(size_t bytes) {
  const auto same =
      std::find_if(order_.rbegin(), order_.rend(), [&](uintptr_t place) { return free_.at(place) == bytes; });
  if (same != order_.rend()) {
    const uintptr_t place = *same;
    if (!is_nothing(place, bytes + kBehind))
      fail(Code::kDevice, "[backend/gpu] {} bytes of memory were written to after they were given back",
           bytes);
    order_.erase(std::next(same).base());
    taken_.insert(free_.extract(place));
    return reinterpret_cast<void*>(place);
  }
  if (bytes + kBehind < bytes) return nullptr;
  void* const memory = std::aligned_alloc(kAllocationAlign, bytes + kBehind);
  if (!memory) return nullptr;
  std::memset(memory, kNothing, bytes + kBehind);
  taken_.emplace(reinterpret_cast<uintptr_t>(memory), bytes);
  return memory;
}

size_t Memory::give_back(const void* memory) {
  const auto at = taken_.find(reinterpret_cast<uintptr_t>(memory));
  if (at == taken_.end()) return 0;
  const auto [place, bytes] = *at;
  std::memset(reinterpret_cast<void*>(place), kNothing, bytes);
  free_.insert(taken_.extract(at));
  order_.push_back(place);
  return bytes;
}

void Memory::check() const {
  for (const auto& [begin, bytes] : taken_)
    if (!is_nothing(begin + bytes, kBehind))
      fail(Code::kDevice, "[backend/gpu] something was written behind the end of {} bytes of memory", bytes);
}

// Arguments are pointers and numbers; no number is as large as an address.
void Memory::check(const Launch& launch) const {
  for (size_t i = 0; i + sizeof(uintptr_t) <= launch.args_size; i += sizeof(uintptr_t)) {
    uintptr_t word = 0;
    std::memcpy(&word, launch.args + i, sizeof word);
    const auto after = free_.upper_bound(word);
    if (after == free_.begin()) continue;
    const auto& [begin, bytes] = *std::prev(after);
    if (word < begin + bytes)
      fail(Code::kDevice, "[backend/gpu] kernel {} is given memory that was given back: byte {} of {}",
           kernel_names()[static_cast<size_t>(launch.kernel)], word - begin, bytes);
  }
}

}  // namespace juno::gpu::host
