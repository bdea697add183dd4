// SPDX-License-Identifier: Apache-2.0
// The kernels as the host vendor runs them.
#pragma once
#include <span>

#include "backend/gpu/host/stream.h"

namespace juno::gpu::host {

// The tensors that a launch names lie in host memory. Throws Error.
void run(Stream& stream, const Launch& launch, const Weather& weather);
// Launches, one after another, to their end.
void run(std::span<const Launch> launches, const Weather& weather = Weather());
inline void run(const Launch& launch, const Weather& weather = Weather()) { run({&launch, 1}, weather); }

}  // namespace juno::gpu::host
