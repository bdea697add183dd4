// SPDX-License-Identifier: Apache-2.0
// Integers in pairs of halves, which hold them exactly to 2048. Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/tiles.h"
#include "base/half.h"

namespace juno::gpu {

// Bytes `first` and `second` of a word plus 1024, as halves.
template <int kFirst, int kSecond>
JUNO_GPU uint32_t over_1024(uint32_t bytes) {
  return bytes_of(bytes, 0x64646464u, 0x4040u | kFirst | kSecond << 8);
}
JUNO_GPU constexpr uint32_t both(uint16_t half) { return half | static_cast<uint32_t>(half) << 16; }
// An integer of at most 2048 as a half, twice.
JUNO_GPU constexpr uint32_t integer_pair(int x) { return both(f32_to_f16(static_cast<float>(x))); }

}  // namespace juno::gpu
