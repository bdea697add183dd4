// SPDX-License-Identifier: Apache-2.0
// Cosines and sines of the rotary embedding on the host, and the constants of an attention score: what all
// backends must compute alike before their kernels begin.
#pragma once
#include <span>

#include "ops/ops.h"

namespace juno::ops {

// row: [2*pairs]. angle = position · freq[i] in double; cos and sin are scaled by the magnitude, then rounded
// once.
void rope_row(int32_t position, const Rope& rope, float* row);

// The score in units of log2: tanh(dot · before) · after, or, without a soft cap, dot · after.
struct ScoreScale {
  bool capped = false;
  float before = 0, after = 0;
};
ScoreScale score_scale(const Attention& how);

}  // namespace juno::ops
