// SPDX-License-Identifier: Apache-2.0
// The integers of a block of weights, fast for the formats whose `v` a compiler does not turn into vectors by
// itself. Included by vec/kernels.cc only.
#pragma once
#include "quant/formats.h"

namespace juno::cpu {
namespace {

// Vectors of the compiler, not of a processor: it cuts them to what the instruction set has.
using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Signed16 = int8_t __attribute__((vector_size(16)));
using Shorts16 = int16_t __attribute__((vector_size(32)));

template <class Vector>
JUNO_BOTH void widen(const Vector& from, int16_t* to) {
  const Shorts16 wide = __builtin_convertvector(from, Shorts16);
  __builtin_memcpy(to, &wide, sizeof wide);
}

// 32 numbers of 4 bits in 16 bytes, `offset` added.
JUNO_BOTH void unpack_nibbles(const uint8_t* q, int offset, int16_t* v) {
  Bytes16 bytes;
  __builtin_memcpy(&bytes, q, sizeof bytes);
  widen(Signed16(bytes & 15) + static_cast<int8_t>(offset), v);
  widen(Signed16(bytes >> 4) + static_cast<int8_t>(offset), v + 16);
}

template <class F>
JUNO_BOTH void unpack_block(const typename F::Block& block, int16_t* v) {
  quant::unpack<F>(block, v);
}
template <>
JUNO_BOTH void unpack_block<quant::Q4_0>(const quant::Q4_0::Block& block, int16_t* v) {
  unpack_nibbles(block.q, -8, v);
}
template <>
JUNO_BOTH void unpack_block<quant::Q4_1>(const quant::Q4_1::Block& block, int16_t* v) {
  unpack_nibbles(block.q, 0, v);
}
template <>
JUNO_BOTH void unpack_block<quant::Q8_0>(const quant::Q8_0::Block& block, int16_t* v) {
  for (int half = 0; half < 32; half += 16) {
    Signed16 bytes;
    __builtin_memcpy(&bytes, block.q + half, sizeof bytes);
    widen(bytes, v + half);
  }
}

}  // namespace
}  // namespace juno::cpu
