// SPDX-License-Identifier: Apache-2.0
// Q5_0: 32 integers of 5 bits, the highest apart, and a scale. w = d (q - 16).
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

struct Q5_0 {
  static constexpr const char* name = "Q5_0";
  static constexpr uint32_t gguf_id = 6;
  static constexpr int block_size = 32;
  static constexpr int max_v = 16;
  struct Block {
    uint16_t d;
    uint8_t high[4];
    uint8_t q[16];
  };
  static_assert(sizeof(Block) == 22);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr int v(const Block& b, int i) {
    return (nibble32(b.q, i) | bit(b.high, i) << 4) - 16;
  }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    const uint32_t high = load32(b.high);
    for (int i = 0; i < 16; ++i) {
      v[i] = static_cast<int16_t>(static_cast<int>((b.q[i] & 15) | (high >> i & 1) << 4) - 16);
      v[i + 16] = static_cast<int16_t>(static_cast<int>(b.q[i] >> 4 | (high >> (i + 16) & 1) << 4) - 16);
    }
  }
};

}  // namespace juno::quant
