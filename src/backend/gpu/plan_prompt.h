// SPDX-License-Identifier: Apache-2.0
// Launches of the many-token kernels, the memory they take, and what they can do.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/launch.h"

namespace juno::gpu {

// What RoundArgs::unit is for products with rows of k weights of this format; 0: there is no kernel for it.
int many_unit(uint32_t format, int64_t k);

// Rounded activations: of `rows` rows of k elements in blocks of `block`.
size_t panels_bytes(int64_t rows, int64_t k, int block);
Panels panels_at(std::byte* memory, int64_t rows, int64_t k);

Launch plan(const RoundArgs& a);
Launch plan(const ManyArgs& a);

bool can_attend_prompt(const PromptArgs& a);
Launch plan(const PromptArgs& a);

}  // namespace juno::gpu
