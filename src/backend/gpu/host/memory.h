// SPDX-License-Identifier: Apache-2.0
// Device memory at its worst: no number is in it before it is written, what is given back goes to the next
// one who asks for as much, the last place first, and a write behind an end is noticed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "backend/gpu/launch.h"

namespace juno::gpu::host {

class Memory {
 public:
  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* take(size_t bytes);              // aligned to kAllocationAlign; null where there is none
  size_t give_back(const void* memory);  // how much it was; 0 where it is not from here

  // Throws Error: something was written behind the end of what was taken. take() finds what was written into
  // memory after it was given back.
  void check() const;
  // Throws Error: the launch names memory that was given back.
  void check(const Launch& launch) const;

 private:
  using Places = std::map<uintptr_t, size_t>;  // where each begins, and its bytes

  Places taken_, free_;
  std::vector<uintptr_t> order_;  // of those that are free, the last one given back at the end
};

}  // namespace juno::gpu::host
