// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace juno {
namespace {

constexpr uintptr_t kMeasureBase = uintptr_t{1} << 46;
constexpr size_t kMeasureBytes = size_t{1} << 45;

}  // namespace

void Arena::measure() {
  adopt(reinterpret_cast<void*>(kMeasureBase), kMeasureBytes);
  measuring_ = true;
}

void Arena::adopt(void* memory, size_t bytes) {
  base_ = static_cast<char*>(memory);
  capacity_ = bytes / kAlign * kAlign;
  front_ = back_ = peak_ = 0;
  measuring_ = false;
}

// `bytes` rounded up to the alignment, known to fit.
size_t Arena::claim(size_t bytes) {
  const size_t room = capacity_ - front_ - back_;
  if (bytes > room)
    fail(Code::kFailed, "[base] a forward pass needs {} bytes more than the {} that were planned for it",
         bytes - room, capacity_);
  const size_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
  peak_ = std::max(peak_, front_ + back_ + rounded);
  return rounded;
}

void* Arena::take(size_t bytes) {
  const size_t at = front_;
  front_ += claim(bytes);
  return base_ + at;
}

void* Arena::keep(size_t bytes) {
  back_ += claim(bytes);
  return base_ + (capacity_ - back_);
}

}  // namespace juno
