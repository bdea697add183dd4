// SPDX-License-Identifier: Apache-2.0
// TQ2_0: 256 integers of 2 bits, for weights that are -1, 0 or 1, and a scale. w = d (q - 1).
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

struct TQ2_0 {
  static constexpr const char* name = "TQ2_0";
  static constexpr uint32_t gguf_id = 35;
  static constexpr int block_size = 256;
  static constexpr int max_v = 2;  // no ternary weight has code 3, but a file may hold it
  struct Block {
    uint8_t q[64];
    uint16_t d;
  };
  static_assert(sizeof(Block) == 66);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr int v(const Block& b, int i) { return pair128(b.q, i) - 1; }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int j = 0; j < 8; ++j)
      for (int i = 0; i < 32; ++i)
        v[j * 32 + i] = static_cast<int16_t>((b.q[j / 4 * 32 + i] >> (j % 4 * 2) & 3) - 1);
  }
};

}  // namespace juno::quant
