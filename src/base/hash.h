// SPDX-License-Identifier: Apache-2.0
// 64-bit FNV-1a: short names for long results (logits in golden files), not a defence against anybody.
#pragma once
#include <cstddef>
#include <cstdint>

namespace juno {

class Fnv1a {
 public:
  void add(const void* data, size_t bytes) {
    const auto* p = static_cast<const uint8_t*>(data);
    for (size_t i = 0; i < bytes; ++i) value_ = (value_ ^ p[i]) * 0x100000001b3ULL;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace juno
