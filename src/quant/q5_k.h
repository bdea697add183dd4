// SPDX-License-Identifier: Apache-2.0
// Q5_K: Q4_K with a fifth bit for each element. w = d s q - dmin u.
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

struct Q5_K {
  static constexpr const char* name = "Q5_K";
  static constexpr uint32_t gguf_id = 13;
  static constexpr int block_size = 256;
  static constexpr int max_v = 63 * 31;
  static constexpr int max_u = 63;
  struct Block {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t high[32];
    uint8_t q[128];
  };
  static_assert(sizeof(Block) == 176);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr float m(const Block& b) { return -f16_to_f32(b.dmin); }
  JUNO_BOTH static constexpr int v(const Block& b, int i) {
    return scale6(b.scales, i / 32) * (nibble64(b.q, i) | bit256(b.high, i) << 4);
  }
  JUNO_BOTH static constexpr int u(const Block& b, int i) { return min6(b.scales, i / 32); }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int j = 0; j < 8; j += 2) {
      const int low = scale6(b.scales, j), high = scale6(b.scales, j + 1);
      for (int i = 0; i < 32; ++i) {
        const int q = b.q[j * 16 + i], top = b.high[i] >> j;
        v[j * 32 + i] = static_cast<int16_t>(low * ((q & 15) | (top & 1) << 4));
        v[j * 32 + 32 + i] = static_cast<int16_t>(high * (q >> 4 | (top & 2) << 3));
      }
    }
  }
};

}  // namespace juno::quant
