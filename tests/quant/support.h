// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share: the list of formats as GoogleTest types, rows of random blocks.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/philox.h"
#include "quant/dot.h"
#include "quant/formats.h"

namespace juno::quant::test {

template <class L>
struct AsTypes;
template <class... Fs>
struct AsTypes<List<Fs...>> {
  using type = ::testing::Types<Fs...>;
};

template <class... Ls>
struct Joined;
template <class... As, class... Bs, class... Ls>
struct Joined<List<As...>, List<Bs...>, Ls...> : Joined<List<As..., Bs...>, Ls...> {};
template <class... Fs>
struct Joined<List<Fs...>> {
  using type = List<Fs...>;
};

template <class L>
struct Split;
template <class... Fs>
struct Split<List<Fs...>> {
  using Floats = typename Joined<List<>, std::conditional_t<FloatFormat<Fs>, List<Fs>, List<>>...>::type;
  using Integers = typename Joined<List<>, std::conditional_t<IntegerFormat<Fs>, List<Fs>, List<>>...>::type;
  using Quantisables =
      typename Joined<List<>, std::conditional_t<Quantisable<Fs>, List<Fs>, List<>>...>::type;
  using Minima = typename Joined<List<>, std::conditional_t<HasMin<Fs>, List<Fs>, List<>>...>::type;
};

using AllFormats = AsTypes<Formats>::type;
using FloatFormats = AsTypes<Split<Formats>::Floats>::type;
using IntegerFormats = AsTypes<Split<Formats>::Integers>::type;
using QuantisableFormats = AsTypes<Split<Formats>::Quantisables>::type;
using MinFormats = AsTypes<Split<Formats>::Minima>::type;

struct FormatName {
  template <class F>
  static std::string GetName(int) {
    return F::name;
  }
};

// The same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint32_t word() { return philox(seed_, position_++, 0)[0]; }
  float between(float low, float high) { return low + (high - low) * uniform(word()); }

 private:
  uint64_t seed_, position_ = 0;
};

template <Format F>
bool has_finite_scales(const typename F::Block& b) {
  if constexpr (FloatFormat<F>) return std::isfinite(F::value(b, 0));
  else if constexpr (HasMin<F>) return std::isfinite(F::d(b)) && std::isfinite(F::m(b));
  else return std::isfinite(F::d(b));
}

// Random bytes, but for infinite and NaN scales.
template <Format F>
typename F::Block random_block(Random& random) {
  typename F::Block block;
  unsigned char bytes[sizeof block];
  do {
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.word());
    std::memcpy(&block, bytes, sizeof block);
  } while (!has_finite_scales<F>(block));
  return block;
}

// One byte everywhere; scales as they come.
template <Format F>
typename F::Block uniform_block(int byte) {
  typename F::Block block;
  std::memset(&block, byte, sizeof block);
  return block;
}

template <Format F>
std::vector<typename F::Block> random_row(Random& random, int64_t k) {
  std::vector<typename F::Block> row;
  for (int64_t i = 0; i < k; i += F::block_size) row.push_back(random_block<F>(random));
  return row;
}

// A row of activations with the memory it views.
struct Activations {
  std::vector<float> x, d;
  std::vector<int8_t> q;
  std::vector<int16_t> h;
  ActivationRow row;

  Activations(std::vector<float> values, int block) : x(std::move(values)) {
    const auto k = static_cast<int64_t>(x.size());
    const auto blocks = static_cast<size_t>(activation_blocks(k, block));
    const auto size = static_cast<size_t>(block);
    d.resize(blocks);
    q.resize(blocks * size);
    h.resize(blocks * size / kSumSize);
    quantise_activations(x.data(), k, block, q.data(), d.data(), h.data());
    row = {x.data(), q.data(), d.data(), h.data(), k, block};
  }
};

inline std::vector<float> random_floats(Random& random, int64_t k) {
  std::vector<float> x;
  for (int64_t i = 0; i < k; ++i) x.push_back(random.between(-3.0f, 3.0f));
  return x;
}

// Row lengths of real models and small ones that share out unevenly.
inline constexpr int64_t kLengths[] = {32, 96, 256, 512, 576, 640, 768, 896, 1024, 3072, 3584, 14336, 18944};

}  // namespace juno::quant::test
