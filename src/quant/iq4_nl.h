// SPDX-License-Identifier: Apache-2.0
// IQ4_NL: 32 nibbles that choose from a table, and a scale. w = d table[q].
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

// Denser where weights are frequent.
JUNO_BOTH constexpr int iq4_value(int q) {
  constexpr int8_t table[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  return table[q];
}

struct IQ4_NL {
  static constexpr const char* name = "IQ4_NL";
  static constexpr uint32_t gguf_id = 20;
  static constexpr int block_size = 32;
  static constexpr int max_v = 127;
  struct Block {
    uint16_t d;
    uint8_t q[16];
  };
  static_assert(sizeof(Block) == 18);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr int v(const Block& b, int i) { return iq4_value(nibble32(b.q, i)); }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int i = 0; i < 16; ++i) {
      v[i] = static_cast<int16_t>(iq4_value(b.q[i] & 15));
      v[i + 16] = static_cast<int16_t>(iq4_value(b.q[i] >> 4));
    }
  }
};

}  // namespace juno::quant
