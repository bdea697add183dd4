// SPDX-License-Identifier: Apache-2.0
// Q2_K: 256 integers of 2 bits; a scale and a minimum of 4 bits for each 16. w = d s q - dmin u.
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

struct Q2_K {
  static constexpr const char* name = "Q2_K";
  static constexpr uint32_t gguf_id = 10;
  static constexpr int block_size = 256;
  static constexpr int max_v = 15 * 3;
  static constexpr int max_u = 15;
  struct Block {
    uint8_t scales[16];  // low half the scale, high half the minimum
    uint8_t q[64];
    uint16_t d, dmin;
  };
  static_assert(sizeof(Block) == 84);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr float m(const Block& b) { return -f16_to_f32(b.dmin); }
  JUNO_BOTH static constexpr int v(const Block& b, int i) {
    return (b.scales[i / 16] & 15) * pair128(b.q, i);
  }
  JUNO_BOTH static constexpr int u(const Block& b, int i) { return b.scales[i / 16] >> 4; }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int j = 0; j < 16; ++j) {
      const uint8_t* q = b.q + j / 8 * 32 + j % 2 * 16;
      const int scale = b.scales[j] & 15;
      for (int i = 0; i < 16; ++i)
        v[j * 16 + i] = static_cast<int16_t>(scale * (q[i] >> (j % 8 / 2 * 2) & 3));
    }
  }
};

}  // namespace juno::quant
