// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/entries.h"
#include "backend/gpu/kernels/many_float.h"

namespace juno::gpu::host {
namespace {

constexpr Entry kEntries[] = {JUNO_MANY_FLOAT_KERNELS(JUNO_ENTRY)};

}  // namespace

std::span<const Entry> many_float_entries() { return kEntries; }

}  // namespace juno::gpu::host
