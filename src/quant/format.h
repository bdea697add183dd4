// SPDX-License-Identifier: Apache-2.0
// What a weight format says about itself, and what is written once over that: units, values, rows.
// The numerics contract, §2 and §3. Adding a format: its header, and its name in formats.h.
#pragma once
#include <cassert>
#include <concepts>
#include <cstdint>

#include "base/portable.h"

namespace juno::quant {

template <class... Fs>
struct List {};

// block_size elements share one Block, whose bytes are those of the GGUF file.
template <class F>
concept Format = requires {
  typename F::Block;
  { F::name } -> std::convertible_to<const char*>;
  { F::gguf_id } -> std::convertible_to<uint32_t>;
  { F::block_size } -> std::convertible_to<int>;
};

// A weight is a number of its own.
template <class F>
concept FloatFormat = Format<F> && F::block_size == 1 && !requires {
  F::max_v;
}
&&requires(const typename F::Block& b) {
  { F::value(b, 0) } -> std::same_as<float>;
};

// With a minimum: w = d v + m u, with 0 <= u <= max_u and u the same for each 16 elements.
template <class F>
concept HasMin = requires(const typename F::Block& b) {
  { F::m(b) } -> std::same_as<float>;
  { F::u(b, 0) } -> std::same_as<int>;
  { F::max_u } -> std::convertible_to<int>;
};

// w = d v: d is one number a block, v an integer that includes the integer sub-scale, |v| <= max_v.
template <class F>
concept IntegerFormat = Format<F> && requires(const typename F::Block& b) {
  { F::d(b) } -> std::same_as<float>;
  { F::v(b, 0) } -> std::same_as<int>;
  { F::max_v } -> std::convertible_to<int>;
};

// Formats that can be made, not only read, have `quantise`.
template <class F>
concept Quantisable = requires(const float* x, typename F::Block& b) {
  F::quantise(x, b);
};

// Largest magnitude of a quantised activation, and elements under one of its sums.
inline constexpr int kMaxQ = 127;
inline constexpr int kSumSize = 16;

// Elements whose products are added up as integers: as many as f32 can still hold exactly under one d.
template <IntegerFormat F>
consteval int unit_size() {
  int unit = F::block_size < 128 ? F::block_size : 128;
  while (F::max_v * kMaxQ * unit >= 1 << 24) unit /= 2;
  return unit;
}
template <IntegerFormat F>
inline constexpr int kUnit = unit_size<F>();

// Elements of an activation block for weights of such blocks, in a row of k elements.
JUNO_BOTH constexpr int activation_block(int block_size, int64_t k) {
  if (block_size < 256) return 32;
  return k % 1024 == 0 ? 128 : k % 512 == 0 ? 64 : 32;
}

// What every format must satisfy to be in the list.
template <Format F>
consteval bool well_formed() {
  static_assert(FloatFormat<F> != IntegerFormat<F>, "a format is a float format or an integer format");
  if constexpr (IntegerFormat<F>) {
    static_assert(F::block_size == 32 || F::block_size == 256, "the activation blocks of the contract, §2");
    static_assert(kUnit<F> >= 32, "sums over 32 elements must stay below 2^24");
    static_assert(F::block_size % kUnit<F> == 0, "d must be constant over a unit");
  }
  if constexpr (HasMin<F>) {
    constexpr int largest = F::block_size < 128 ? F::block_size : 128;  // activation block
    static_assert(F::max_u * kMaxQ * largest < 1 << 24, "the sum of minima must stay below 2^24");
  }
  return true;
}

// Element i of a block. A format of integers may have its own `value`: equal, but for the sign of a zero.
template <Format F>
JUNO_BOTH constexpr float value(const typename F::Block& b, int i) {
  if constexpr (requires { F::value(b, i); }) {
    return F::value(b, i);
  } else if constexpr (HasMin<F>) {
    return F::d(b) * static_cast<float>(F::v(b, i)) + F::m(b) * static_cast<float>(F::u(b, i));
  } else {
    return F::d(b) * static_cast<float>(F::v(b, i));
  }
}

// All v of a block; a format's own `unpack` is only faster.
template <IntegerFormat F>
JUNO_BOTH constexpr void unpack(const typename F::Block& b, int16_t* v) {
  if constexpr (requires { F::unpack(b, v); }) {
    F::unpack(b, v);
  } else {
    for (int i = 0; i < F::block_size; ++i) v[i] = static_cast<int16_t>(F::v(b, i));
  }
}

// All u of a block, one for each 16 elements.
template <HasMin F>
JUNO_BOTH constexpr void unpack_minima(const typename F::Block& b, int16_t* u) {
  for (int i = 0; i < F::block_size / kSumSize; ++i) u[i] = static_cast<int16_t>(F::u(b, i * kSumSize));
}

// n elements, whole blocks.
template <Format F>
JUNO_BOTH void dequantise_row(const typename F::Block* w, int64_t n, float* y) {
  assert(n % F::block_size == 0);
  for (int64_t b = 0; b < n / F::block_size; ++b)
    for (int i = 0; i < F::block_size; ++i) y[b * F::block_size + i] = value<F>(w[b], i);
}

template <Quantisable F>
JUNO_BOTH void quantise_row(const float* x, int64_t n, typename F::Block* w) {
  assert(n % F::block_size == 0);
  for (int64_t b = 0; b < n / F::block_size; ++b) F::quantise(x + b * F::block_size, w[b]);
}

}  // namespace juno::quant
