// SPDX-License-Identifier: Apache-2.0
// Values that the vocabularies of all vendors speak of.
#pragma once
#include <cstdint>

namespace juno::gpu {

inline constexpr int kWarp = 32;

// Moved in one piece: 8 and 16 bytes.
struct alignas(8) Pair32 {
  uint32_t x[2];
};
struct alignas(16) Quad32 {
  uint32_t x[4];
};
struct alignas(16) Floats4 {
  float x[4];
};

}  // namespace juno::gpu
