// SPDX-License-Identifier: Apache-2.0
// MXFP4 (OCP Microscaling 1.0): 32 numbers of 4 bits (e2m1) and a power of two. w = 2^(e - 128) v.
#pragma once
#include <cstdint>

#include "base/portable.h"
#include "quant/bits.h"

namespace juno::quant {

struct MXFP4 {
  static constexpr const char* name = "MXFP4";
  static constexpr uint32_t gguf_id = 39;
  static constexpr int block_size = 32;
  static constexpr int max_v = 12;
  struct Block {
    uint8_t e;
    uint8_t q[16];
  };
  static_assert(sizeof(Block) == 17);

  // 2^-128 and 2^-127 are denormals.
  JUNO_BOTH static constexpr float d(const Block& b) {
    return float_of(b.e < 2 ? 0x00200000u << b.e : static_cast<uint32_t>(b.e - 1) << 23);
  }
  // Twice the number, so that it is an integer: 0 1 2 3 4 6 8 12 and their negatives.
  JUNO_BOTH static constexpr int v(const Block& b, int i) {
    constexpr int8_t table[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    return table[nibble32(b.q, i)];
  }
};

}  // namespace juno::quant
