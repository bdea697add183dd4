// SPDX-License-Identifier: Apache-2.0
// F32: as they are.
#pragma once
#include <cstdint>

#include "base/portable.h"

namespace juno::quant {

struct F32 {
  static constexpr const char* name = "F32";
  static constexpr uint32_t gguf_id = 0;
  static constexpr int block_size = 1;
  struct Block {
    float x;
  };
  static_assert(sizeof(Block) == 4);

  JUNO_BOTH static constexpr float value(const Block& b, int) { return b.x; }
  JUNO_BOTH static constexpr void quantise(const float* x, Block& b) { b.x = *x; }
};

}  // namespace juno::quant
