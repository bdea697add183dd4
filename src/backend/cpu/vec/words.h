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

// Four bytes, a float, anywhere.
JUNO_BOTH int32_t four_at(const void* p) {
  int32_t four;
  std::memcpy(&four, p, sizeof four);
  return four;
}
JUNO_BOTH float float_at(const void* p) {
  float x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

}  // namespace
}  // namespace juno::cpu
