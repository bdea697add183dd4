// SPDX-License-Identifier: Apache-2.0
// Rounded activations in shared memory, as matrix-vector products read them: a record for each block, q then
// the sums then d. The records of a group are pushed by 16 bytes from the last group's, so that the eight
// groups that a warp reads at once lie in different banks.
#pragma once
#include "backend/gpu/kernels/round.h"

namespace juno::gpu {

JUNO_BOTH constexpr int record_bytes(int block) { return (block + block / 8 + 4 + 15) / 16 * 16; }
JUNO_BOTH constexpr int record_row_bytes(int k, int block) { return k / block * record_bytes(block) + 128; }

// The group that owns a block.
JUNO_BOTH constexpr int group_of(int at, int blocks) { return (8 * (at + 1) - 1) / blocks; }

struct Records {
  unsigned char* at;
  int k, block;

  JUNO_GPU unsigned char* record(int row, int b) const {
    return at + row * record_row_bytes(k, block) + b * record_bytes(block) + 16 * group_of(b, k / block);
  }
  JUNO_GPU void q(int row, int i, uint32_t four) const {
    *reinterpret_cast<uint32_t*>(record(row, i / block) + i % block) = four;
  }
  JUNO_GPU void h(int row, int cell, uint32_t sums) const {
    const int per = block / 32;
    reinterpret_cast<uint32_t*>(record(row, cell / per) + block)[cell % per] = sums;
  }
  JUNO_GPU void d(int row, int b, float d) const {
    *reinterpret_cast<float*>(record(row, b) + block + block / 8) = d;
  }
};

// From rows in global memory, by the whole block of threads.
JUNO_GPU void copy_records(const Records& to, const Rounded& from, int first_row, int rows) {
  const int pieces = to.k / 16, cells = to.k / 32, blocks = to.k / to.block;
  JUNO_UNROLL_BY(1)
  for (int i = thread(); i < rows * pieces; i += threads()) {
    const int row = i / pieces, at = i % pieces * 16;
    *reinterpret_cast<Quad32*>(to.record(row, at / to.block) + at % to.block) =
        *reinterpret_cast<const Quad32*>(from.q + static_cast<int64_t>(first_row + row) * to.k + at);
  }
  JUNO_UNROLL_BY(1)
  for (int i = thread(); i < rows * cells; i += threads())
    to.h(i / cells, i % cells, from.h[static_cast<int64_t>(first_row) * cells + i]);
  JUNO_UNROLL_BY(1)
  for (int i = thread(); i < rows * blocks; i += threads())
    to.d(i / blocks, i % blocks, from.d[static_cast<int64_t>(first_row) * blocks + i]);
}

}  // namespace juno::gpu
