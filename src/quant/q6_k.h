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

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* v) {
    for (int half = 0; half < 2; ++half) {
      const uint8_t* low = b.low + 64 * half;
      const uint8_t* high = b.high + 32 * half;
      for (int j = 0; j < 4; ++j) {
        const int8_t* s = b.scales + 8 * half + 2 * j;
        int16_t* out = v + 128 * half + 32 * j;
        for (int i = 0; i < 32; ++i) {
          const int q = (low[j % 2 * 32 + i] >> (j / 2 * 4) & 15) | (high[i] >> (2 * j) & 3) << 4;
          out[i] = static_cast<int16_t>(s[i / 16] * (q - 32));
        }
      }
    }
  }
};

}  // namespace juno::quant
