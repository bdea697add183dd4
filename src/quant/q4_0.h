// SPDX-License-Identifier: Apache-2.0
// Q4_0: 32 nibbles and a scale. w = d (q - 8).
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"

namespace juno::quant {

struct Q4_0 {
  static constexpr const char* name = "Q4_0";
  static constexpr uint32_t gguf_id = 2;
  static constexpr int block_size = 32;
  static constexpr int max_v = 8;
  struct Block {
    uint16_t d;
    uint8_t q[16];
  };
  static_assert(sizeof(Block) == 18);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr int v(const Block& b, int i) { return nibble32(b.q, i) - 8; }

  // The first element of largest magnitude becomes -8, whatever its sign.
  JUNO_BOTH static constexpr void quantise(const float* x, Block& b) {
    float top = x[0];
    for (int i = 1; i < 32; ++i) top = magnitude(x[i]) > magnitude(top) ? x[i] : top;
    const float d = top / -8.0f;
    const float r = d == 0.0f ? 0.0f : 1.0f / d;
    b.d = f32_to_f16(d);
    for (int i = 0; i < 16; ++i) b.q[i] = static_cast<uint8_t>(code(x[i] * r) | code(x[i + 16] * r) << 4);
  }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int i = 0; i < 16; ++i) {
      v[i] = static_cast<int16_t>((b.q[i] & 15) - 8);
      v[i + 16] = static_cast<int16_t>((b.q[i] >> 4) - 8);
    }
  }

 private:
  JUNO_BOTH static constexpr int code(float q) {
    const float up = q + 8.5f;
    return up < 0.0f ? 0 : up < 16.0f ? static_cast<int>(up) : 15;
  }
};

}  // namespace juno::quant
