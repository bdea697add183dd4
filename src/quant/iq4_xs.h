// SPDX-License-Identifier: Apache-2.0
// IQ4_XS: IQ4_NL in blocks of 256, with a signed scale of 6 bits for each 32. w = d s table[q].
#pragma once
#include <cstdint>

#include "base/half.h"
#include "quant/bits.h"
#include "quant/iq4_nl.h"

namespace juno::quant {

struct IQ4_XS {
  static constexpr const char* name = "IQ4_XS";
  static constexpr uint32_t gguf_id = 23;
  static constexpr int block_size = 256;
  static constexpr int max_v = 32 * 127;
  struct Block {
    uint16_t d;
    uint8_t scales_high[2];  // two bits each
    uint8_t scales_low[4];   // four bits each
    uint8_t q[128];
  };
  static_assert(sizeof(Block) == 136);

  JUNO_BOTH static constexpr float d(const Block& b) { return f16_to_f32(b.d); }
  JUNO_BOTH static constexpr int s(const Block& b, int j) {
    const int low = b.scales_low[j / 2] >> (j % 2 * 4) & 15;
    const int high = b.scales_high[j / 4] >> (j % 4 * 2) & 3;
    return (low | high << 4) - 32;
  }
  JUNO_BOTH static constexpr int q(const Block& b, int i) {
    return iq4_value(nibble32(b.q + i / 32 * 16, i % 32));
  }
  JUNO_BOTH static constexpr int v(const Block& b, int i) { return s(b, i / 32) * q(b, i); }

  // Exact in this order too; a zero has the sign that other readers of the format give it.
  JUNO_BOTH static constexpr float value(const Block& b, int i) {
    return d(b) * static_cast<float>(s(b, i / 32)) * static_cast<float>(q(b, i));
  }

  JUNO_BOTH static constexpr void unpack(const Block& b, int16_t* __restrict v) {
    for (int j = 0; j < 8; ++j) {
      const int scale = s(b, j);
      for (int i = 0; i < 16; ++i) {
        v[j * 32 + i] = static_cast<int16_t>(scale * iq4_value(b.q[j * 16 + i] & 15));
        v[j * 32 + 16 + i] = static_cast<int16_t>(scale * iq4_value(b.q[j * 16 + i] >> 4));
      }
    }
  }
};

}  // namespace juno::quant
