// SPDX-License-Identifier: Apache-2.0
// Joins steps that one kernel can do. THE LIST of patterns is in fuse.cc; none changes a bit.
#pragma once
#include "backend/gpu/steps.h"

namespace juno::gpu {

// Steps of whole layers: nothing outside reads what only they pass among themselves, but for `results`. many:
// there are more rows than the kernels for few serve at once, and act(gate) ∘ up is cheaper where it is read
// than where it is made.
Steps fuse(Steps steps, const Tensors& results, bool many = false);

}  // namespace juno::gpu
