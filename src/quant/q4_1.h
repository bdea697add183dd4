// SPDX-License-Identifier: Apache-2.0
// Q4_1: 32 nibbles, a scale and a minimum. w = d q + m.
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

struct Q4_1 {
  static constexpr const char* name = "Q4_1";
  static constexpr uint32_t gguf_id = 3;
  static constexpr int block_size = 32;
  static constexpr int max_v = 15;
  static constexpr int max_u = 1;
  struct Block {
    uint16_t d, m;
    uint8_t q[16];
  };
  static_assert(sizeof(Block) == 20);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr float m(const Block& b) { return f16_to_f32(b.m); }
  JUNO_BOTH static constexpr int v(const Block& b, int i) { return nibble32(b.q, i); }
  JUNO_BOTH static constexpr int u(const Block&, int) { return 1; }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int i = 0; i < 16; ++i) {
      v[i] = static_cast<int16_t>(b.q[i] & 15);
      v[i + 16] = static_cast<int16_t>(b.q[i] >> 4);
    }
  }
};

}  // namespace juno::quant
