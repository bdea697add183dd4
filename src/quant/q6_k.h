// SPDX-License-Identifier: Apache-2.0
// Q6_K: 256 integers of 6 bits, the highest two apart; a signed byte of scale for each 16. w = d s (q - 32).
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

struct Q6_K {
  static constexpr const char* name = "Q6_K";
  static constexpr uint32_t gguf_id = 14;
  static constexpr int block_size = 256;
  static constexpr int max_v = 128 * 32;
  struct Block {
    uint8_t low[128];  // twice 64 bytes: their low halves are 64 elements, their high halves the next 64
    uint8_t high[64];
    int8_t scales[16];
    uint16_t d;
  };
  static_assert(sizeof(Block) == 210);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr int q(const Block& b, int i) {
    const int low = b.low[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    return (low | pair128(b.high, i) << 4) - 32;
  }
  JUNO_BOTH static constexpr int v(const Block& b, int i) { return b.scales[i / 16] * q(b, i); }

  // Exact in this order too; a zero has the sign that other readers of the format give it.
  JUNO_BOTH static constexpr float value(const Block& b, int i) {
    return d(b) * static_cast<float>(b.scales[i / 16]) * static_cast<float>(q(b, i));
  }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int j = 0; j < 16; ++j) {
      const uint8_t* low = b.low + j / 8 * 64 + j % 4 * 16;
      const uint8_t* high = b.high + j / 8 * 32 + j % 2 * 16;
      const int scale = b.scales[j];
      for (int i = 0; i < 16; ++i) {
        const int q = (low[i] >> (j % 8 / 4 * 4) & 15) | (high[i] >> (j % 8 / 2 * 2) & 3) << 4;
        v[j * 16 + i] = static_cast<int16_t>(scale * (q - 32));
      }
    }
  }
};

}  // namespace juno::quant
