// SPDX-License-Identifier: Apache-2.0
// The choice of experts for one token: docs/numerics.md §8.
#pragma once
#include "ops/ops.h"

namespace juno::ops {

// logits [experts] -> ids and weights [top_k], in order of choice: the higher score first, then the lower id.
void route_row(const float* logits, int experts, const Router& how, int32_t* ids, float* weights);

}  // namespace juno::ops
