// SPDX-License-Identifier: Apache-2.0
// A panel's blocks one after the other, as the file has them or turned, with what lies singly in each.
// Included by the files of vec/ only.
#pragma once
#include "backend/cpu/vec/panel_group.h"
#include "backend/cpu/vec/turned.h"

#if defined(JUNO_PANELS)

namespace juno::cpu {
namespace {

// Rows of one panel in the file, or turned. In the file panels overlap near the last row, or repeat a row.
struct PanelRows {
  const uint8_t* w;
  int64_t stride;
  bool turned;
  int ahead;       // bytes: turned weights so far on are asked for while these are read
  int64_t output;  // of the first lane that is kept
  int skip, rows;  // lanes: skip, skip + 1, … skip + rows - 1 are kept
};
JUNO_BOTH PanelRows panel_rows(const Product& p, int64_t output, int64_t last) {
  const auto* w = static_cast<const uint8_t*>(p.weight);
  if (p.outputs < kPanelRows) return {w + output * p.row_bytes, 0, false, 0, output, 0, 1};
  const int rows = last - output < kPanelRows ? static_cast<int>(last - output) : kPanelRows;
  const int64_t past = output + kPanelRows - p.outputs, first = past > 0 ? output - past : output;
  const int count = p.tokens * p.planes, ahead = count > kPanelTokens && count <= kBatchTokens ? 0 : 4096;
  return {w + first * p.row_bytes,          p.row_bytes, p.turned, ahead, output,
          static_cast<int>(output - first), rows};
}

// Of blocks [from, to) of all rows: what lies singly is gathered row by row.
template <class F>
JUNO_BOTH void gather_scales(const PanelRows& rows, int64_t from, int64_t to, uint32_t* gathered,
                             uint32_t* fifths) {
  using Block = typename F::Block;
  for (int r = 0; r < kPanelRows; ++r) {
    const auto* blocks = reinterpret_cast<const Block*>(rows.w + r * rows.stride);
    for (int64_t b = from; b < to; ++b) {
      uint32_t& own = gathered[(b - from) * kPanelRows + r];
      if constexpr (quant::HasMin<F>)
        std::memcpy(&own, reinterpret_cast<const uint8_t*>(blocks + b) + kScales<F>, 4);
      else if constexpr (HalfScale<F>) own = blocks[b].d;
      else own = bits_of(F::d(blocks[b]));
      if constexpr (requires { Raw<F>::fifths; })
        std::memcpy(fifths + (b - from) * kPanelRows + r,
                    reinterpret_cast<const uint8_t*>(blocks + b) + Raw<F>::fifths, 4);
    }
  }
}

inline constexpr int kGather = 8;  // blocks whose scales are gathered at a time

// What lies singly in a block: the scales, and the dwords of fifth bits.
struct Singles {
  Ints scales, fifths;
};
template <class F>
JUNO_BOTH Singles turned_singles(const uint8_t* block) {
  Singles of{};
  if constexpr (Turnable<F>) {
    if constexpr (requires { Raw<F>::fifths; }) of.fifths = turned_dwords(block, Raw<F>::fifths);
    if constexpr (quant::HasMin<F>) of.scales = turned_dwords(block, kScales<F>);
    else if constexpr (half_at<F>() == -1) of.scales = turned_dwords(block, offsetof(typename F::Block, d));
    else of.scales = turned_halves<F>(block);
  }
  return of;
}

// visit(block of the rows, what lies singly in it, b) for blocks [from, to) of the file.
template <class F, class Visit>
JUNO_BOTH void visit_blocks(const PanelRows& rows, int64_t from, int64_t to, Visit visit) {
  constexpr int64_t kBytes = sizeof(typename F::Block);
  if (rows.turned) {
    for (int64_t b = from; b < to; ++b) {
      const uint8_t* const block = rows.w + b * kBytes * kPanelRows;
      visit(RawRows{block, 0, block + rows.ahead, true}, turned_singles<F>(block), b);
    }
    return;
  }
  alignas(64) uint32_t gathered[kGather * kPanelRows], fifths[kGather * kPanelRows];
  const auto single = [](const uint32_t* all, int64_t index) {
    return load_ints(reinterpret_cast<const int32_t*>(all + index * kPanelRows));
  };
  for (int64_t first = from; first < to; first += kGather) {
    const int64_t last = first + kGather < to ? first + kGather : to;
    gather_scales<F>(rows, first, last, gathered, fifths);
    for (int64_t b = first; b < last; ++b) {
      const RawRows w{rows.w + b * kBytes, rows.stride, rows.w + kPanelRows * (rows.stride + b * kBytes),
                      false};
      visit(w, Singles{single(gathered, b - first), single(fifths, b - first)}, b);
    }
  }
}

// The scales d and m of a block.
template <class F>
JUNO_BOTH Floats scale_d(const Singles& singles) {
  if constexpr (quant::HasMin<F> || HalfScale<F>) return low_half(singles.scales);
  else return as_floats(singles.scales);
}
template <class F>
JUNO_BOTH Floats scale_m(const Singles& singles) {
  const Floats m = high_half(singles.scales);
  return kNegativeMinimum<F> ? wide_negative(m) : m;
}

}  // namespace
}  // namespace juno::cpu

#endif
