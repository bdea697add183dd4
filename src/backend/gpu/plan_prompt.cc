// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/plan_prompt.h"

#include <algorithm>
#include <cassert>

#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/prompt_shapes.h"
#include "quant/formats.h"

namespace juno::gpu {
namespace {

// Up to so many rows of activations the kernel for few is faster.
constexpr int kFewRows = 32;
constexpr int kMostSplits = 8;
constexpr int kJoining = 16;  // an eighth of a tile against one more split to join
// Rounding: rows are cut into pieces while there are few of them.
constexpr int kFewTokens = 64, kRoundPiece = 1024, kRoundThreads = 256, kRoundSums = 256;

struct Many {
  uint32_t format;
  int unit, largest_unit, block_size;
  Kernel wide, few;
};
constexpr Many kMany[] = {
#define JUNO_MANY_ENTRY(F, unit)                       \
  {                                                    \
      quant::F::gguf_id,         unit,                 \
      quant::kUnit<quant::F>,    quant::F::block_size, \
      Kernel::wide_##F##_##unit, Kernel::few_##F##_##unit},
    JUNO_MANY_FORMATS(JUNO_MANY_ENTRY)
#undef JUNO_MANY_ENTRY
};

// A format's own unit where the activations' blocks hold one, else 32.
const Many* many_for(uint32_t format, int64_t k) {
  for (const Many& m : kMany) {
    if (m.format != format) continue;
    const bool whole = quant::activation_block(m.block_size, k) >= m.largest_unit;
    if (m.unit == (whole ? m.largest_unit : 32)) return &m;
  }
  return nullptr;
}

uint32_t ceil_div(int64_t n, int64_t by) { return static_cast<uint32_t>((n + by - 1) / by); }

template <class Shape>
int64_t tiles(const ManyArgs& a) {
  int64_t of_rows = 0;
  for (int i = 0; i < a.part_count; ++i) of_rows += ceil_div(a.parts[i].weight.rows, Shape::kRows);
  return of_rows * ceil_div(a.rows, Shape::kTokens);
}
// How many blocks share a tile's K, so that the multiprocessors are busy and end together.
template <class Shape>
int splits(const ManyArgs& a, const Chip& chip) {
  int best = 1;
  int64_t least = 0;  // eighths of a tile that the busiest multiprocessor multiplies, and the joining
  for (int splits = 1; splits <= kMostSplits; splits *= 2) {
    const int64_t turns = ceil_div(tiles<Shape>(a) * splits, chip.multiprocessors);
    const int64_t cost = turns * (8 * kJoining / splits) + (splits > 1 ? splits + kJoining / 2 : 0);
    if (splits > 1 && cost >= least) continue;
    best = splits;
    least = cost;
  }
  return best;
}
template <class Shape>
size_t partial_count(const ManyArgs& a, const Chip& chip) {
  const int n = splits<Shape>(a, chip);
  return n == 1 ? 0 : static_cast<size_t>(tiles<Shape>(a)) * n * Shape::kRows * Shape::kTokens;
}
template <class Shape>
Launch many_launch(Kernel kernel, const ManyArgs& a, const Chip& chip) {
  ManyArgs with = a;
  with.splits = splits<Shape>(a, chip);
  const uint32_t across = ceil_div(a.rows, Shape::kTokens);
  const Extent grid{across, static_cast<uint32_t>(tiles<Shape>(a) / across), static_cast<uint32_t>(with.splits)};
  return make_launch(static_cast<int>(kernel), grid, Shape::kThreads, Shape::kShared, with);
}
template <class Shape>
Launch prompt_launch(Kernel kernel, const PromptArgs& a) {
  const Extent grid{ceil_div(a.rows, Shape::kRows * a.places.kv_heads / a.heads),
                    static_cast<uint32_t>(a.places.kv_heads)};
  return make_launch(static_cast<int>(kernel), grid, Shape::kThreads, Shape::kShared, a);
}

}  // namespace

int many_unit(uint32_t format, int64_t k) {
  const Many* m = many_for(format, k);
  return m ? m->unit : 0;
}

PanelCounts panel_counts(int64_t rows, int64_t k, int block) {
  const int64_t padded = padded_to(rows, rows <= kFewRows ? FewShape::kTokens : WideShape::kTokens);
  const auto q = static_cast<size_t>(padded * stages_of(k) * kStageDepth);
  return {.rows = static_cast<int32_t>(padded), .q = q, .h = q / 16, .d = q / static_cast<size_t>(block)};
}

Launch plan(const RoundArgs& a) {
  const QuantiseArgs& from = a.from;
  const int tokens = a.y.rows / from.planes;
  const uint32_t pieces = from.tokens < kFewTokens ? ceil_div(from.k, kRoundPiece) : 1;
  const auto floats = from.source == Source::kNorm ? from.k : padded_to(ceil_div(from.k, pieces), kStageDepth);
  return make_launch(static_cast<int>(Kernel::round_panels), {pieces, static_cast<uint32_t>(tokens)},
                     kRoundThreads, static_cast<uint32_t>((kRoundSums + floats) * sizeof(float)), a);
}

size_t partial_count(const ManyArgs& a, const Chip& chip) {
  return a.rows <= kFewRows ? partial_count<FewShape>(a, chip) : partial_count<WideShape>(a, chip);
}
Launch plan(const ManyArgs& a, const Chip& chip) {
  const Many* m = many_for(a.parts[0].weight.format, a.k);
  assert(m);
  return a.rows <= kFewRows ? many_launch<FewShape>(m->few, a, chip) : many_launch<WideShape>(m->wide, a, chip);
}

bool can_attend_prompt(const PromptArgs& a) {
  const Places& at = a.places;
  return std::max(at.key_dim, at.value_dim) <= 256 && at.key_dim % 2 == 0 && at.value_dim % 2 == 0 &&
         a.heads / at.kv_heads <= PromptShape<64>::kRows;
}
Launch plan(const PromptArgs& a) {
  assert(can_attend_prompt(a));
  const int dim = std::max(a.places.key_dim, a.places.value_dim);
  const auto either = [&](Kernel plain, Kernel capped) { return a.capped != 0 ? capped : plain; };
  if (dim <= 64)
    return prompt_launch<PromptShape<64>>(either(Kernel::attend_prompt_64, Kernel::attend_capped_64), a);
  if (dim <= 128)
    return prompt_launch<PromptShape<128>>(either(Kernel::attend_prompt_128, Kernel::attend_capped_128), a);
  return prompt_launch<PromptShape<256>>(either(Kernel::attend_prompt_256, Kernel::attend_capped_256), a);
}

}  // namespace juno::gpu
