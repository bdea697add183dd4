// SPDX-License-Identifier: Apache-2.0
// Q8_0: 32 signed bytes and a scale. w = d q.
#pragma once
#include <cstdint>

#include "base/half.h"

namespace juno::quant {

struct Q8_0 {
  static constexpr const char* name = "Q8_0";
  static constexpr uint32_t gguf_id = 8;
  static constexpr int block_size = 32;
  static constexpr int max_v = 128;
  struct Block {
    uint16_t d;
    int8_t q[32];
  };
  static_assert(sizeof(Block) == 34);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr int v(const Block& b, int i) { return b.q[i]; }

  // The largest magnitude becomes 127; halves round away from zero.
  JUNO_BOTH static constexpr void quantise(const float* x, Block& b) {
    float top = 0;
    for (int i = 0; i < 32; ++i) top = magnitude(x[i]) > top ? magnitude(x[i]) : top;
    const float d = top / 127.0f;
    const float r = d == 0.0f ? 0.0f : 1.0f / d;
    b.d = f32_to_f16(d);
    for (int i = 0; i < 32; ++i) {
      const float a = magnitude(x[i] * r);
      const int whole = a < 127.0f ? static_cast<int>(a) : 127;
      const int q = whole + (a < 127.0f && a - static_cast<float>(whole) >= 0.5f);
      b.q[i] = static_cast<int8_t>(x[i] < 0.0f ? -q : q);
    }
  }
};

}  // namespace juno::quant
