// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace juno::cpu {
namespace {

constexpr size_t kSize = 2 << 20;  // of most systems; where they are larger, nothing is lost but speed

size_t up(size_t bytes) { return (bytes + kSize - 1) / kSize * kSize; }

}  // namespace

HugePages::HugePages(size_t bytes) {
  const size_t wanted = up(bytes), room = wanted + kSize;
  void* const raw = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return;
  const auto start = reinterpret_cast<uintptr_t>(raw), first = up(start), end = first + wanted;
  if (first > start) ::munmap(raw, first - start);
  if (start + room > end) ::munmap(reinterpret_cast<void*>(end), start + room - end);
  data_ = reinterpret_cast<std::byte*>(first);
  bytes_ = wanted;
  ::madvise(data_, bytes_, MADV_HUGEPAGE);  // a wish: small pages are slower, not wrong
}

HugePages::~HugePages() {
  if (data_) ::munmap(data_, bytes_);
}

}  // namespace juno::cpu
