// SPDX-License-Identifier: Apache-2.0
// Q3_K: 256 integers from -4 to 3, the sign apart; a signed scale of 6 bits for each 16. w = d s q.
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

struct Q3_K {
  static constexpr const char* name = "Q3_K";
  static constexpr uint32_t gguf_id = 11;
  static constexpr int block_size = 256;
  static constexpr int max_v = 32 * 4;
  struct Block {
    uint8_t high[32];  // a set bit: do not subtract 4
    uint8_t q[64];
    uint8_t scales[12];  // the low four bits of 16 scales, then the high two
    uint16_t d;
  };
  static_assert(sizeof(Block) == 110);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr int s(const Block& b, int j) {
    const int low = b.scales[j % 8] >> (j / 8 * 4) & 15;
    const int high = b.scales[8 + j % 4] >> (j / 4 * 2) & 3;
    return (low | high << 4) - 32;
  }
  JUNO_BOTH static constexpr int q(const Block& b, int i) {
    return pair128(b.q, i) - 4 * (1 - bit256(b.high, i));
  }
  JUNO_BOTH static constexpr int v(const Block& b, int i) { return s(b, i / 16) * q(b, i); }

  // Exact in this order too; a zero has the sign that other readers of the format give it.
  JUNO_BOTH static constexpr float value(const Block& b, int i) {
    return d(b) * static_cast<float>(s(b, i / 16)) * static_cast<float>(q(b, i));
  }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int j = 0; j < 16; ++j) {
      const uint8_t* low = b.q + j / 8 * 32 + j % 2 * 16;
      const uint8_t* high = b.high + j % 2 * 16;
      const int scale = s(b, j);
      for (int i = 0; i < 16; ++i) {
        const int q = (low[i] >> (j % 8 / 2 * 2) & 3) | (high[i] >> (j / 2) & 1) << 2;
        v[j * 16 + i] = static_cast<int16_t>(scale * (q - 4));
      }
    }
  }
};

}  // namespace juno::quant
