// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a function, no state.
#pragma once
#include <array>
#include <cstdint>

namespace juno {

// Four random words for one counter under one key.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{0xd2511f53u} * c[0];
    const uint64_t q = uint64_t{0xcd9e8d57u} * c[2];
    c = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(q),
         static_cast<uint32_t>(p >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(p)};
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return c;
}

// The words of one draw at one position of a sequence (the numerics contract, §10).
constexpr std::array<uint32_t, 4> philox(uint64_t seed, uint64_t position, uint64_t draw) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  return philox4x32({low(position), high(position), low(draw), high(draw)}, {low(seed), high(seed)});
}

// A word as one of 2^24 equally spaced numbers in [0, 1), each an exact f32.
constexpr float uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace juno
