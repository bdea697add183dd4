// SPDX-License-Identifier: Apache-2.0
// F16: IEEE binary16.
#pragma once
#include <cstdint>

#include "base/half.h"

namespace juno::quant {

struct F16 {
  static constexpr const char* name = "F16";
  static constexpr uint32_t gguf_id = 1;
  static constexpr int block_size = 1;
  struct Block {
    uint16_t x;
  };
  static_assert(sizeof(Block) == 2);

  JUNO_BOTH static constexpr float value(const Block& b, int) { return f16_to_f32(b.x); }
  JUNO_BOTH static constexpr void quantise(const float* x, Block& b) { b.x = f32_to_f16(*x); }
};

}  // namespace juno::quant
