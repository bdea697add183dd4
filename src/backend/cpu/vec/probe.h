// SPDX-License-Identifier: Apache-2.0
// What a processor does at most with this instruction set: reading memory, and multiplying bytes that lie in
// registers already, which is a word of each vocabulary. Included by vec/kernels.cc only.
#pragma once
#include "backend/cpu/vec/vocabulary.h"

namespace juno::cpu {
namespace {

void read_all(const std::byte* from, size_t bytes) {
  uint64_t sums[8] = {};
  const auto* at = reinterpret_cast<const uint64_t*>(from);
  for (size_t i = 0; i + 8 <= bytes / sizeof *at; i += 8)
    for (int j = 0; j < 8; ++j) sums[j] ^= at[i + j];
  for (uint64_t sum : sums) asm volatile("" : : "r"(sum));
}

}  // namespace
}  // namespace juno::cpu
