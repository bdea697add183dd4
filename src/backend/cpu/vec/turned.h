// SPDX-License-Identifier: Apache-2.0
// Weights turned when they are loaded, so that reading them is reading on: panel after panel, block after
// block, dword i of all rows side by side, then the two bytes of each that are left over. As many bytes as
// before. Included by the files of vec/ only.
#pragma once
#include "backend/cpu/vec/raw.h"

#if defined(JUNO_PANELS)

namespace juno::cpu {
namespace {

template <class F>
inline constexpr int kBlockBytes = static_cast<int>(sizeof(typename F::Block));

// Where the two bytes stand in the file's block: f16 d, first or last. Without them -1.
template <class F>
constexpr int half_at() {
  if constexpr (kBlockBytes<F> % 4 == 0) return -1;
  else if constexpr (HalfScale<F>) return static_cast<int>(offsetof(typename F::Block, d));
  else return -2;
}
template <class F>
inline constexpr int kOrigin = half_at<F>() == 0 ? 2 : 0;  // of the first dword
template <class F>
concept Turnable = HasRaw<F> &&
    (half_at<F>() == -1 || half_at<F>() == 0 || half_at<F>() == kBlockBytes<F> - 2);

// kPanelRows rows of the file to `to`.
template <Turnable F>
JUNO_BOTH void turn_panel(const uint8_t* rows, int64_t row_bytes, uint8_t* to) {
  constexpr int kDwords = kBlockBytes<F> / 4;
  for (int64_t b = 0; b < row_bytes; b += kBlockBytes<F>, to += kBlockBytes<F> * kPanelRows) {
    const uint8_t* const w = rows + b + kOrigin<F>;
    for (int i = 0; i + 4 <= kDwords; i += 4) {
      Bytes four[4];
      turn4(w + 4 * i, row_bytes, four);
      for (int j = 0; j < 4; ++j) store_bytes(to + 4 * (i + j) * kPanelRows, four[j]);
    }
    for (int i = kDwords / 4 * 4; i < kDwords; ++i)
      for (int r = 0; r < kPanelRows; ++r)
        std::memcpy(to + 4 * (i * kPanelRows + r), w + r * row_bytes + 4 * i, 4);
    if constexpr (half_at<F>() >= 0)
      for (int r = 0; r < kPanelRows; ++r)
        std::memcpy(to + 4 * kDwords * kPanelRows + 2 * r, rows + b + r * row_bytes + half_at<F>(), 2);
  }
}

// A block of one row of a panel as the file has it; `block` is where the panel's block begins.
template <Turnable F>
JUNO_BOTH void turn_back(const uint8_t* block, int row, uint8_t* to) {
  constexpr int kDwords = kBlockBytes<F> / 4;
  for (int i = 0; i < kDwords; ++i)
    std::memcpy(to + kOrigin<F> + 4 * i, block + 4 * (i * kPanelRows + row), 4);
  if constexpr (half_at<F>() >= 0)
    std::memcpy(to + half_at<F>(), block + 4 * kDwords * kPanelRows + 2 * row, 2);
}

// The dwords at byte `at` of a turned block, and its halves as dwords.
JUNO_BOTH Ints turned_dwords(const uint8_t* block, int at) {
  return load_bytes(block + at / 4 * 4 * kPanelRows);
}
template <class F>
JUNO_BOTH Ints turned_halves(const uint8_t* block) {
  uint16_t halves[kPanelRows];
  alignas(64) int32_t wide[kPanelRows];
  std::memcpy(halves, block + kBlockBytes<F> / 4 * 4 * kPanelRows, sizeof halves);
  for (int r = 0; r < kPanelRows; ++r) wide[r] = halves[r];
  return load_ints(wide);
}

}  // namespace
}  // namespace juno::cpu

#endif
