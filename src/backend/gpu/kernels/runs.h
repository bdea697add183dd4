// SPDX-License-Identifier: Apache-2.0
// Which rows of a batch stand in runs, and so belong to the attention of prompts.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/gpu.h"

namespace juno::gpu {

// Whether row `row` goes on where row - 1 ends, in the same sequence.
JUNO_GPU bool goes_on(const Places& at, int row) {
  return at.positions[row] >= 0 && at.positions[row - 1] + 1 == at.positions[row] &&
         at.first_page[row - 1] == at.first_page[row];
}
JUNO_GPU bool in_run(const Places& at, int row, int rows) {
  return (row > 0 && goes_on(at, row)) || (row + 1 < rows && goes_on(at, row + 1));
}

}  // namespace juno::gpu
