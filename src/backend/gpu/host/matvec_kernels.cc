// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/entries.h"
#include "backend/gpu/kernels/matvec.h"

namespace juno::gpu::host {
namespace {

constexpr Entry kEntries[] = {JUNO_MATVEC_KERNELS(JUNO_ENTRY)};

}  // namespace

std::span<const Entry> matvec_entries() { return kEntries; }

}  // namespace juno::gpu::host
