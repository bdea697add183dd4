// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/plan_prompt.h"

#include <algorithm>
#include <cassert>

#include "backend/gpu/kernels/float_shape.h"
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/prompt_shapes.h"
#include "backend/gpu/plan.h"
#include "quant/formats.h"

namespace juno::gpu {
namespace {

// Rounding: rows are cut into pieces, but for many of them that are normed, which each piece would do again.
constexpr int kFewTokens = 64, kRoundPiece = 1024, kRoundThreads = 256, kRoundSums = 256;
constexpr int kMostSplits = 8;

struct Many {
  uint32_t format;
  int unit, largest_unit, block_size;
  Kernel few, wide;
};
constexpr Many kMany[] = {
#define JUNO_MANY_ENTRY(F, unit)                                                                           \
  {quant::F::gguf_id,        unit, quant::kUnit<quant::F>, quant::F::block_size, Kernel::few_##F##_##unit, \
   Kernel::wide_##F##_##unit},
    JUNO_MANY_FORMATS(JUNO_MANY_ENTRY)
#undef JUNO_MANY_ENTRY
};
struct Broad {
  uint32_t format;
  int unit;
  Kernel kernel;
};
constexpr Broad kBroad[] = {
#define JUNO_BROAD_ENTRY(F, unit) {quant::F::gguf_id, unit, Kernel::broad_##F##_##unit},
    JUNO_BROAD_FORMATS(JUNO_BROAD_ENTRY)
#undef JUNO_BROAD_ENTRY
};

// A way to multiply: its tile and what it costs, in ns on an H200 with Q4_K: a stage of K, and what comes
// before and after them.
struct Way {
  Kernel kernel;
  int tokens, rows;
  uint32_t threads, shared, parked;
  int stage, fixed, joining;
};
template <class Shape>
constexpr Way way(Kernel kernel, int stage, int fixed, int joining) {
  return {kernel,         Shape::kTokens, Shape::kRows, Shape::kThreads, Shape::kShared,
          Shape::kParked, stage,          fixed,        joining};
}

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

int64_t tiles(const Way& way, const ManyArgs& a) {
  int64_t of_rows = 0;
  for (int i = 0; i < a.part_count; ++i) of_rows += ceil_div(a.parts[i].weight.rows, way.rows);
  return of_rows * ceil_div(a.rows, way.tokens);
}

// A way, how many tiles are one block's alone, and how many blocks share K of the others.
struct Choice {
  Way way;
  int32_t whole = 0, splits = 0;
  int64_t shared = 0, cost = 0;

  int64_t items() const { return whole + shared * splits; }
};
// Turns that all multiprocessors take part in are whole tiles; what is left may be shared out.
void consider(Choice& best, const Way& way, const ManyArgs& a, const Chip& chip) {
  if (a.x.rows % way.tokens != 0) return;
  const int64_t all = tiles(way, a), full = all / chip.multiprocessors, rest = all % chip.multiprocessors;
  const int64_t alone = stages_of(a.k) * way.stage;
  for (int splits = 1; splits <= kMostSplits; splits *= 2) {
    const int64_t share = alone / splits + way.fixed + (splits > 1 ? way.joining : 0);
    const int64_t cost = full * (alone + way.fixed) + ceil_div(rest * splits, chip.multiprocessors) * share;
    if (best.splits != 0 && cost >= best.cost) continue;
    best = {way, static_cast<int32_t>(all - rest), splits, rest, cost};
  }
}
Choice choose(const ManyArgs& a, const Chip& chip) {
  const Many* m = many_for(a.parts[0].weight.format, a.k);
  assert(m);
  Choice best;
  consider(best, way<FewShape>(m->few, 1000, 9000, 4000), a, chip);
  consider(best, way<WideShape>(m->wide, 830, 5000, 3000), a, chip);
  // Its sums wait in memory that the launch before may still use, and groups without a block end before it
  // has.
  const bool has_groups = a.k / a.block >= 4;
  for (const Broad& b : kBroad)
    if (b.format == m->format && b.unit == m->unit && has_groups)
      consider(best, way<BroadShape>(b.kernel, 1250, 10000, 5000), a, chip);
  return best;
}

// Blocks: each takes one item after another.
uint32_t resident(const Choice& c, const Chip& chip) {
  return static_cast<uint32_t>(std::min<int64_t>(c.items(), chip.multiprocessors));
}

template <class Shape>
Launch prompt_launch(Kernel kernel, const PromptArgs& a) {
  const Extent grid{static_cast<uint32_t>(a.places.kv_heads),
                    ceil_div(a.rows, Shape::kRows * a.places.kv_heads / a.heads)};
  return make_launch(static_cast<int>(kernel), grid, Shape::kThreads, Shape::kShared, a);
}

}  // namespace

int many_unit(uint32_t format, int64_t k) {
  const Many* m = many_for(format, k);
  return m ? m->unit : 0;
}

PanelCounts panel_counts(int64_t rows, int64_t k, int block) {
  const int tile = rows <= FewShape::kTokens    ? FewShape::kTokens
                   : rows <= WideShape::kTokens ? WideShape::kTokens
                                                : BroadShape::kTokens;
  const int64_t padded = padded_to(rows, tile);
  const auto q = static_cast<size_t>(padded * stages_of(k) * kStageDepth);
  return {.rows = static_cast<int32_t>(padded), .q = q, .h = q / 16, .d = q / static_cast<size_t>(block)};
}

Launch plan(const RoundArgs& a) {
  const QuantiseArgs& from = a.from;
  const int tokens = a.y.rows / from.planes;
  const bool whole = from.source == Source::kNorm && from.tokens >= kFewTokens;
  return make_launch(static_cast<int>(Kernel::round_panels),
                     {whole ? 1 : ceil_div(from.k, kRoundPiece), static_cast<uint32_t>(tokens)},
                     kRoundThreads, kRoundSums * sizeof(float), a);
}

bool can_multiply_many(const Chip& chip) {
  constexpr int kMost = std::max({FewShape::kShared, WideShape::kShared, BroadShape::kShared});
  return chip.shared_per_block >= uint32_t{kMost};
}

size_t partial_count(const ManyArgs& a, const Chip& chip) {
  const Choice c = choose(a, chip);
  return c.splits == 1 ? 0 : static_cast<size_t>(c.shared) * c.splits * c.way.rows * c.way.tokens;
}
size_t parked_count(const ManyArgs& a, const Chip& chip) {
  const Choice c = choose(a, chip);
  return size_t{resident(c, chip)} * c.way.parked / sizeof(float);
}
Launch plan(const ManyArgs& a, const Chip& chip) {
  const Choice c = choose(a, chip);
  ManyArgs with = a;
  with.whole = c.whole;
  with.splits = c.splits;
  Launch product =
      make_launch(static_cast<int>(c.way.kernel), {resident(c, chip)}, c.way.threads, c.way.shared, with);
  if (a.rows <= c.way.tokens) product.passing = passing(a.parts, a.part_count);
  return product;
}

Launch plan(const FloatArgs& a) {
  const uint32_t format = a.parts[0].weight.format;
  const Kernel kernel = format == quant::F32::gguf_id   ? Kernel::many_F32
                        : format == quant::F16::gguf_id ? Kernel::many_F16
                                                        : Kernel::many_BF16;
  uint32_t tiles = 0;
  for (int i = 0; i < a.part_count; ++i) tiles += ceil_div(a.parts[i].weight.rows, FloatShape::kRows);
  return make_launch(static_cast<int>(kernel), {ceil_div(a.tokens, FloatShape::kTokens), tiles},
                     FloatShape::kThreads, FloatShape::kShared, a);
}

bool can_attend_prompt(const PromptArgs& a, const Chip& chip) {
  const Places& at = a.places;
  return std::max(at.key_dim, at.value_dim) <= 256 && at.key_dim % 8 == 0 && at.value_dim % 8 == 0 &&
         a.heads / at.kv_heads <= PromptShape<256>::kRows && plan(a).shared <= chip.shared_per_block;
}
Launch plan(const PromptArgs& a) {
  const int dim = std::max(a.places.key_dim, a.places.value_dim);
  const auto either = [&](Kernel plain, Kernel capped) { return a.capped != 0 ? capped : plain; };
  if (dim <= 64)
    return prompt_launch<PromptShape<64>>(either(Kernel::attend_prompt_64, Kernel::attend_capped_64), a);
  if (dim <= 128)
    return prompt_launch<PromptShape<128>>(either(Kernel::attend_prompt_128, Kernel::attend_capped_128), a);
  return prompt_launch<PromptShape<256>>(either(Kernel::attend_prompt_256, Kernel::attend_capped_256), a);
}

}  // namespace juno::gpu
