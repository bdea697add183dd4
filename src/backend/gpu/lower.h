// SPDX-License-Identifier: Apache-2.0
// From steps to launches: which kernel does what, with which memory.
#pragma once
#include "backend/gpu/launch.h"
#include "backend/gpu/steps.h"

namespace juno::gpu {

// What the steps of one pass share; all of it lies on the device.
struct PassMemory {
  const int32_t* positions = nullptr;   // [tokens]
  const int32_t* first_page = nullptr;  // [tokens]: where in `pages` the row's sequence begins
  const int32_t* pages = nullptr;
  int max_chunks = 1;              // of 64 positions, of the longest sequence these launches serve
  bool runs = false;               // some rows follow each other in one sequence, enough for attend_prompt
  bool alone = true;               // some rows do not
  bool apart = false;              // no row sees another one's key
  uint32_t* counters = nullptr;    // kCounters of plan_prompt.h, 0 before and after a launch
  std::byte* workspace = nullptr;  // what launches pass among themselves: Lowered::workspace bytes
};

struct Lowering {
  Chip chip;
  int planes = 1;  // of activations: 2 under int8x2
  PassMemory memory;
};

struct Lowered {
  std::vector<Launch> launches;
  size_t workspace = 0;  // bytes that they need, whether they were there or not
};

Lowered lower(const Steps& steps, const Lowering& how);

// Bytes of ExpertsStep::scratch.
size_t experts_scratch_bytes(const ops::Experts& w, int64_t tokens, int64_t top_k);

Weight device_weight(const Tensor& weight);  // as GpuDevice uploaded it

}  // namespace juno::gpu
