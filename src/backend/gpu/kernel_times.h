// SPDX-License-Identifier: Apache-2.0
// From the times of a pass's launches to those of its kernels.
#pragma once
#include <span>
#include <vector>

#include "backend/gpu/launch.h"
#include "ops/executor.h"

namespace juno::gpu {

// Of at least one value.
double median(std::vector<double> values);

// Launches of a kernel that have the same blocks and read as many bytes are alike. seen: positions whose keys
// and values the pass reads.
std::vector<ops::KernelTime> by_kernel(std::span<const Launch> launches, std::span<const double> seconds,
                                       uint64_t seen);

}  // namespace juno::gpu
