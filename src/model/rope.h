// SPDX-License-Identifier: Apache-2.0
// Frequencies of the rotary embedding and their scalings (docs/numerics.md §7), in double, by our own pow and
// log.
#pragma once
#include "model/loader.h"

namespace juno::model {

enum class RopeLayout : bool { kHalves, kInterleaved };

// Pair i turns by base^(-2i/rope_dims), then scaled by what the file has of
//   rope_freqs.weight (Llama 3)             divisors, one a pair;
//   rope_factors_{short,long}.weight        divisors (LongRoPE): the long set when the configured context
//   exceeds
//                                           original_context_length;
//   rope.scaling.type linear                one divisor;
//   rope.scaling.type yarn                  Peng et al., "YaRN" (2023), §3.
ops::Rope make_rope(Loader& in, RopeLayout layout);

// Unscaled, for layers that have a base of their own (sliding-window layers of Gemma 3).
ops::Rope plain_rope(const Config& config, double base, RopeLayout layout);

}  // namespace juno::model
