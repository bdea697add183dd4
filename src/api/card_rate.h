// SPDX-License-Identifier: Apache-2.0
// How fast a card's kernels read and write its memory.
#pragma once
#include "ops/executor.h"

namespace juno::api {

// Bytes a second, read and written: the best of some passes that scale activations too large for any cache.
// Throws Error.
double card_rate(ops::Executor& op);

}  // namespace juno::api
