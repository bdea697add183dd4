// SPDX-License-Identifier: Apache-2.0
// Launches of the many-token kernels, the memory they take, and what they can do.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/launch.h"

namespace juno::gpu {

// Up to so many rows of activations go to the matrix-vector kernels, more to the tensor cores. Measured on an
// H200: 8 rows of gate and up of an 8B take 42 us here and 48 us there, a whole step 4.1 and 4.8 ms.
inline constexpr int kVectorRows = 8;

// The unit in whose order products with rows of k weights of this format want their input: 32, 64 or 128; 0:
// there is no kernel for it.
int many_unit(uint32_t format, int64_t k);

// Rounded activations of `rows` rows of k elements in blocks of `block`: how many rows they are with those
// that fill the last tile up, and how many numbers.
struct PanelCounts {
  int32_t rows;
  size_t q, h, d;
};
PanelCounts panel_counts(int64_t rows, int64_t k, int block);

Launch plan(const RoundArgs& a);

bool can_multiply_many(const Chip& chip);  // its blocks have the shared memory for it
// There are so many of ManyArgs::arrived.
inline constexpr int64_t kCounters = 1 << 14;

// How many numbers ManyArgs::partial and ManyArgs::parked hold.
size_t partial_count(const ManyArgs& a, const Chip& chip);
size_t parked_count(const ManyArgs& a, const Chip& chip);
Launch plan(const ManyArgs& a, const Chip& chip);

Launch plan(const FloatArgs& a);

bool can_attend_prompt(const PromptArgs& a, const Chip& chip);
Launch plan(const PromptArgs& a);

}  // namespace juno::gpu
