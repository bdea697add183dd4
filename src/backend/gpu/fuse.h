// SPDX-License-Identifier: Apache-2.0
// Joins steps that one kernel can do. THE LIST of patterns is in fuse.cc; none changes a bit.
#pragma once
#include "backend/gpu/steps.h"

namespace juno::gpu {

// Steps of whole layers: nothing outside reads what only they pass among themselves, but for `results`.
Steps fuse(Steps steps, const Tensors& results);

}  // namespace juno::gpu
