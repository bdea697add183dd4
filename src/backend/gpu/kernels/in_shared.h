// SPDX-License-Identifier: Apache-2.0
// Units of a layout's planes that wait in shared memory, loaded by the words for those in global memory.
#pragma once
#include "backend/gpu/kernels/layout.h"

namespace juno::gpu {

struct Staged {
  const unsigned char* at;
};
JUNO_GPU Staged operator+(Staged from, int bytes) { return {from.at + bytes}; }
JUNO_GPU Quad32 stream16(Staged from) { return *reinterpret_cast<const Quad32*>(from.at); }
JUNO_GPU Quad32 constant16(Staged from) { return *reinterpret_cast<const Quad32*>(from.at); }
JUNO_GPU Pair32 constant8(Staged from) { return *reinterpret_cast<const Pair32*>(from.at); }
JUNO_GPU uint32_t constant4(Staged from) { return *reinterpret_cast<const uint32_t*>(from.at); }
JUNO_GPU uint16_t constant2(Staged from) { return *reinterpret_cast<const uint16_t*>(from.at); }
JUNO_GPU uint8_t constant1(Staged from) { return *from.at; }

}  // namespace juno::gpu
