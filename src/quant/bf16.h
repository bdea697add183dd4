// SPDX-License-Identifier: Apache-2.0
// BF16: the upper half of an f32.
#pragma once
#include <cstdint>

#include "base/half.h"

namespace juno::quant {

struct BF16 {
  static constexpr const char* name = "BF16";
  static constexpr uint32_t gguf_id = 30;
  static constexpr int block_size = 1;
  struct Block {
    uint16_t x;
  };
  static_assert(sizeof(Block) == 2);

  JUNO_BOTH static constexpr float value(const Block& b, int) { return bf16_to_f32(b.x); }
  JUNO_BOTH static constexpr void quantise(const float* x, Block& b) { b.x = f32_to_bf16(*x); }
};

}  // namespace juno::quant
