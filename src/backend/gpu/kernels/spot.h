// SPDX-License-Identifier: Apache-2.0
// Where a block of threads stands in a grid, and how kernels begin.
#pragma once
#include "backend/gpu/kernels/gpu.h"

namespace juno::gpu {

struct Spot {
  int x, y, z;
  int across;  // places in x
};
JUNO_GPU Spot spot() { return {block_x(), block_y(), block_z(), blocks_x()}; }

// The next kernel may take its place; it waits, as this one does, for all that went before.
JUNO_GPU void begin() {
  trigger_dependents();
  wait_dependency();
}

}  // namespace juno::gpu
