// SPDX-License-Identifier: Apache-2.0
// How weights lie on the device. Integer formats: rows in strips of four; a strip's cells of 32 elements one
// after another, in each cell the four rows side by side, so that a warp, whose lanes are four rows times the
// eight groups of docs/numerics.md §3, reads whole sectors. What a format keeps of a cell or a superblock
// lies in planes, one after another (kernels/layout.h). Float formats stay as in the file.
#pragma once
#include <cstdint>

#include "backend/gpu/kernels/args.h"

namespace juno::gpu {

// Bytes of one [rows, cols] matrix on the device, a multiple of 256.
uint64_t device_bytes(uint32_t format, int64_t rows, int64_t cols);

// What the repack kernel does, on the host. `to` has device_bytes.
void repack_on_host(uint32_t format, int64_t rows, int64_t cols, const void* from, void* to);

}  // namespace juno::gpu
