// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/entries.h"
#include "backend/gpu/kernels/prompt.h"

namespace juno::gpu::host {
namespace {

constexpr Entry kEntries[] = {JUNO_MANY_BROAD_KERNELS(JUNO_ENTRY)};

}  // namespace

std::span<const Entry> many_broad_entries() { return kEntries; }

}  // namespace juno::gpu::host
