// SPDX-License-Identifier: Apache-2.0
// What every vocabulary (isa_NAME.h) builds on.
#pragma once
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels.h"
#include "base/portable.h"

namespace juno::cpu {
namespace {

using juno::fma;  // of one number, beside those of Lanes

inline constexpr int kGroupLanes = 8;  // the groups of a row

using Rows = const uint8_t* const*;  // kPair pointers

}  // namespace
}  // namespace juno::cpu
