// SPDX-License-Identifier: Apache-2.0
// Frequencies of the rotary embedding and their scalings (docs/numerics.md §7), in double, by our own pow and log.
#pragma once
#include "model/loader.h"

namespace juno::model {

enum class RopeLayout : bool { kHalves, kInterleaved };

// From the file's rope.* keys and, where present, rope_freqs (Llama 3) or rope_factors_{short,long} (LongRoPE: the
// long set when the configured context exceeds original_context_length).
ops::Rope make_rope(Loader& in, RopeLayout layout);

// Unscaled, for layers that have a base of their own (sliding-window layers of Gemma 3).
ops::Rope plain_rope(const Config& config, double base, RopeLayout layout);

}  // namespace juno::model
