// SPDX-License-Identifier: Apache-2.0
// The instruction sets this program was compiled for, and which of them the processor has.
#pragma once
#include <span>
#include <string_view>

#include "backend/cpu/kernels.h"

namespace juno::cpu {

struct Isa {
  std::string_view name;
  bool (*supported)();
  const Kernels& (*kernels)();
};

// The first that the processor has is taken; the last one runs everywhere.
std::span<const Isa> isas();

}  // namespace juno::cpu
