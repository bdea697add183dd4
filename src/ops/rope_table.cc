// SPDX-License-Identifier: Apache-2.0
#include "ops/rope_table.h"

#include "base/math_double.h"

namespace juno::ops {
namespace {

constexpr double kLog2E = 0x1.71547652b82fep0;

}  // namespace

void rope_row(int32_t position, const Rope& rope, float* row) {
  const size_t pairs = rope.freq.size();
  for (size_t i = 0; i < pairs; ++i) {
    const f64::SinCos turn = f64::sin_cos(static_cast<double>(position) * rope.freq[i]);
    row[i] = static_cast<float>(turn.cos * rope.magnitude);
    row[pairs + i] = static_cast<float>(turn.sin * rope.magnitude);
  }
}

ScoreScale score_scale(const Attention& how) {
  if (how.softcap == 0) return {.after = static_cast<float>(how.scale * kLog2E)};
  return {.capped = true,
          .before = static_cast<float>(how.scale / how.softcap),
          .after = static_cast<float>(how.softcap * kLog2E)};
}

}  // namespace juno::ops
