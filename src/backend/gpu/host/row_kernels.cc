// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/entries.h"
#include "backend/gpu/kernels/rows.h"
#include "backend/gpu/kernels/top.h"

namespace juno::gpu::host {
namespace {

constexpr Entry kEntries[] = {JUNO_ROW_KERNELS(JUNO_ENTRY)};

}  // namespace

std::span<const Entry> row_entries() { return kEntries; }

}  // namespace juno::gpu::host
