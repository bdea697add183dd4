// SPDX-License-Identifier: Apache-2.0
// Rounded activations in shared memory, as matrix-vector products read them: a record for each block, q then
// the sums then d. The records of a group are pushed by 16 bytes from the last group's, so that the eight
// groups that a warp reads at once lie in different banks.
#pragma once
#include "backend/gpu/kernels/round.h"

namespace juno::gpu {

JUNO_BOTH constexpr int record_bytes(int block) { return (block + block / 8 + 4 + 15) / 16 * 16; }
JUNO_BOTH constexpr int record_row_bytes(int k, int block) { return k / block * record_bytes(block) + 128; }

// Blocks have 32, 64 or 128 elements, so that places are found by shifts. The group that owns block b is
// (8b + 7) / blocks: a product with the reciprocal, exact for fewer than 2^13 blocks.
struct Records {
  unsigned char* at;
  int k, block, shift, row_bytes;
  uint32_t inverse;  // of the number of blocks, times 2^31, rounded up

  JUNO_GPU Records(unsigned char* at, int k, int block)
      : at(at),
        k(k),
        block(block),
        shift(block == 128  ? 7
              : block == 64 ? 6
                            : 5),
        row_bytes(record_row_bytes(k, block)),
        inverse(0x7fffffffu / static_cast<uint32_t>(k >> shift) + 1) {}

  JUNO_GPU unsigned char* record(int row, int b) const {
    const uint64_t group = static_cast<uint64_t>(8 * b + 7) * inverse >> 31;
    return at + row * row_bytes + b * record_bytes(block) + 16 * static_cast<int>(group);
  }
  // Of elements i …
  JUNO_GPU void q(int row, int i, uint32_t four) const {
    *reinterpret_cast<uint32_t*>(record(row, i >> shift) + (i & (block - 1))) = four;
  }
  JUNO_GPU void h(int row, int i, uint32_t sums) const {
    *reinterpret_cast<uint32_t*>(record(row, i >> shift) + block + (i & (block - 1)) / 8) = sums;
  }
  JUNO_GPU void d(int row, int i, float d) const {
    *reinterpret_cast<float*>(record(row, i >> shift) + block + block / 8) = d;
  }
};

// From rows in global memory, by the whole block of threads.
JUNO_GPU void copy_records(const Records& to, const Rounded& from, int first_row, int rows) {
  const int pieces = to.k / 16, cells = to.k / 32, blocks = to.k >> to.shift;
  JUNO_UNROLL_BY(1)
  for (int i = thread(); i < rows * pieces; i += threads()) {
    const int row = i / pieces, at = i % pieces * 16;
    *reinterpret_cast<Quad32*>(to.record(row, at >> to.shift) + (at & (to.block - 1))) =
        *reinterpret_cast<const Quad32*>(from.q + static_cast<int64_t>(first_row + row) * to.k + at);
  }
  JUNO_UNROLL_BY(1)
  for (int i = thread(); i < rows * cells; i += threads())
    to.h(i / cells, i % cells * 32, from.h[static_cast<int64_t>(first_row) * cells + i]);
  JUNO_UNROLL_BY(1)
  for (int i = thread(); i < rows * blocks; i += threads())
    to.d(i / blocks, i % blocks * to.block, from.d[static_cast<int64_t>(first_row) * blocks + i]);
}

}  // namespace juno::gpu
