// SPDX-License-Identifier: Apache-2.0
// How several formats pack their integers.
#pragma once
#include <cstdint>

#include "base/portable.h"

namespace juno::quant {

// 32 elements in 16 bytes: the low halves are the first 16.
JUNO_BOTH constexpr int nibble32(const uint8_t* q, int i) { return i < 16 ? q[i] & 15 : q[i - 16] >> 4; }

// 64 elements in 32 bytes and again: the low halves are the first 32.
JUNO_BOTH constexpr int nibble64(const uint8_t* q, int i) {
  return q[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
}

// 128 elements in 32 bytes and again: each pair of bits is 32 of them.
JUNO_BOTH constexpr int pair128(const uint8_t* q, int i) {
  return q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

// 256 elements in 32 bytes: each bit is 32 of them.
JUNO_BOTH constexpr int bit256(const uint8_t* q, int i) { return q[i % 32] >> (i / 32) & 1; }

// Four bytes, lowest first.
JUNO_BOTH constexpr uint32_t load32(const uint8_t* q) {
  return q[0] | static_cast<uint32_t>(q[1]) << 8 | static_cast<uint32_t>(q[2]) << 16 |
         static_cast<uint32_t>(q[3]) << 24;
}

// Bit i.
JUNO_BOTH constexpr int bit(const uint8_t* q, int i) { return q[i / 8] >> (i % 8) & 1; }

// Q4_K and Q5_K: 8 scales and 8 minima of 6 bits in 12 bytes. The last four of each have their low bits
// in the last four bytes and their high bits on top of the first eight.
JUNO_BOTH constexpr int scale6(const uint8_t* s, int j) {
  return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
}
JUNO_BOTH constexpr int min6(const uint8_t* s, int j) {
  return j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
}

}  // namespace juno::quant
