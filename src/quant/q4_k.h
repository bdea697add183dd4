// SPDX-License-Identifier: Apache-2.0
// Q4_K: 256 nibbles; a scale and a minimum of 6 bits for each 32. w = d s q - dmin u.
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

struct Q4_K {
  static constexpr const char* name = "Q4_K";
  static constexpr uint32_t gguf_id = 12;
  static constexpr int block_size = 256;
  static constexpr int max_v = 63 * 15;
  static constexpr int max_u = 63;
  struct Block {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t q[128];
  };
  static_assert(sizeof(Block) == 144);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr float m(const Block& b) { return -f16_to_f32(b.dmin); }
  JUNO_BOTH static constexpr int v(const Block& b, int i) {
    return scale6(b.scales, i / 32) * nibble64(b.q, i);
  }
  JUNO_BOTH static constexpr int u(const Block& b, int i) { return min6(b.scales, i / 32); }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int j = 0; j < 8; j += 2) {
      const int low = scale6(b.scales, j), high = scale6(b.scales, j + 1);
      for (int i = 0; i < 32; ++i) {
        const int q = b.q[j * 16 + i];
        v[j * 32 + i] = static_cast<int16_t>(low * (q & 15));
        v[j * 32 + 32 + i] = static_cast<int16_t>(high * (q >> 4));
      }
    }
  }
};

}  // namespace juno::quant
