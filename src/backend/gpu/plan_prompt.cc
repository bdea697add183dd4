// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/plan_prompt.h"

#include <algorithm>
#include <cassert>

#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/prompt_shapes.h"
#include "quant/formats.h"

namespace juno::gpu {
namespace {

// Up to so many rows of activations the narrow kernel is faster.
constexpr int kNarrowRows = 48;
constexpr int kRoundWarps = 8;

struct Many {
  uint32_t format;
  int unit, largest_unit, block_size;
  Kernel wide, narrow;
};
constexpr Many kMany[] = {
#define JUNO_MANY_ENTRY(F, unit)                       \
  {                                                    \
      quant::F::gguf_id,         unit,                 \
      quant::kUnit<quant::F>,    quant::F::block_size, \
      Kernel::wide_##F##_##unit, Kernel::narrow_##F##_##unit},
    JUNO_MANY_FORMATS(JUNO_MANY_ENTRY)
#undef JUNO_MANY_ENTRY
};

// And from so many on the broad one, where the format has it.
constexpr int kBroadRows = 512;
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

size_t aligned(int64_t bytes) { return static_cast<size_t>(padded_to(bytes, 256)); }
size_t q_bytes(int64_t rows, int64_t k) {
  return aligned(padded_to(rows, kPanelRows) * panel_stages(k) * kStageDepth * 2);
}
size_t h_bytes(int64_t rows, int64_t k) { return q_bytes(rows, k) / 16; }

template <class Shape>
Launch many_launch(Kernel kernel, const ManyArgs& a) {
  Extent grid{ceil_div(a.rows, Shape::kTokens), 0};
  for (int i = 0; i < a.part_count; ++i) grid.y += ceil_div(a.parts[i].weight.rows, Shape::kRows);
  return make_launch(static_cast<int>(kernel), grid, Shape::kThreads, Shape::kShared, a);
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

size_t panels_bytes(int64_t rows, int64_t k, int block) {
  return q_bytes(rows, k) + h_bytes(rows, k) +
         aligned(padded_to(rows, kPanelRows) * panel_stages(k) * kStageDepth / block * 4);
}
Panels panels_at(std::byte* memory, int64_t rows, int64_t k) {
  return {.q = reinterpret_cast<uint16_t*>(memory),
          .h = reinterpret_cast<uint16_t*>(memory + q_bytes(rows, k)),
          .d = reinterpret_cast<float*>(memory + q_bytes(rows, k) + h_bytes(rows, k))};
}

Launch plan(const RoundArgs& a) {
  const Extent grid{ceil_div(panel_stages(a.k), kRoundWarps),
                    ceil_div(int64_t{a.tokens} * a.planes, kPanelRows) * (kPanelRows / 8)};
  return make_launch(static_cast<int>(Kernel::round_panels), grid, kRoundWarps * 32, 0, a);
}

Launch plan(const ManyArgs& a) {
  const Many* m = many_for(a.parts[0].weight.format, a.k);
  assert(m);
  for (const Broad& b : kBroad)
    if (a.rows >= kBroadRows && b.format == m->format && b.unit == m->unit)
      return many_launch<BroadShape>(b.kernel, a);
  return a.rows <= kNarrowRows ? many_launch<NarrowShape>(m->narrow, a) : many_launch<WideShape>(m->wide, a);
}

bool can_attend_prompt(const PromptArgs& a) {
  const Places& at = a.places;
  return std::max(at.key_dim, at.value_dim) <= 256 && at.key_dim % 8 == 0 && at.value_dim % 8 == 0 &&
         a.heads / at.kv_heads <= PromptShape<256>::kRows;
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
