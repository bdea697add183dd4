// SPDX-License-Identifier: Apache-2.0
// Products with weights of every format: docs/numerics.md §3 and §4. Included by vec/kernels.cc only.
#pragma once
#include "backend/cpu/vec/lanes.h"
#include "backend/cpu/vec/pack.h"
#include "quant/dot.h"
#include "quant/formats.h"

namespace juno::cpu {
namespace {

using quant::kGroups;

// A weight row with its integers unpacked; scales are given for each block of activations. Number: int16_t
// where a dot product runs along the row, float where it runs across tokens (every sum of §3 is exact in
// both).
template <class Number>
struct WeightRow {
  Number *v, *u;  // [k], [k/16]
  float *d, *m;   // [blocks]
};

template <class Number>
JUNO_BOTH WeightRow<Number> weight_row(const Product& p, std::byte* scratch, int64_t index) {
  auto* d = reinterpret_cast<float*>(scratch) + index * (2 * p.blocks() + p.k + p.k / 16);
  auto* v = reinterpret_cast<Number*>(d + 2 * p.blocks());
  return {v, v + p.k, d, d + p.blocks()};
}

// Sixteen elements from a position known when compiling: then the compiler sees which bits each comes from.
template <class F, int kBegin, class Number>
JUNO_BOTH void unpack_from(const typename F::Block& block, Number* v) {
  if constexpr (kBegin < F::block_size) {
    for (int i = 0; i < 16; ++i) v[kBegin + i] = static_cast<Number>(F::v(block, kBegin + i));
    unpack_from<F, kBegin + 16>(block, v);
  }
}

template <class F, class Number>
JUNO_BOTH void unpack_row(const Product& p, int64_t output, const WeightRow<Number>& to) {
  const auto* w =
      reinterpret_cast<const typename F::Block*>(static_cast<const char*>(p.weight) + output * p.row_bytes);
  const int per_block = F::block_size < p.block ? 1 : F::block_size / p.block;
  for (int64_t b = 0; b < p.k / F::block_size; ++b) {
    Number* v = to.v + b * F::block_size;
    if constexpr (requires(int16_t * out) { F::unpack(w[b], out); }) {
      int16_t whole[F::block_size];
      F::unpack(w[b], whole);
      for (int i = 0; i < F::block_size; ++i) v[i] = static_cast<Number>(whole[i]);
    } else {
      unpack_from<F, 0>(w[b], v);
    }
    for (int i = 0; i < per_block; ++i) to.d[b * per_block + i] = F::d(w[b]);
    if constexpr (quant::HasMin<F>) {
      for (int i = 0; i < per_block; ++i) to.m[b * per_block + i] = F::m(w[b]);
      for (int i = 0; i < F::block_size / 16; ++i)
        to.u[b * (F::block_size / 16) + i] = static_cast<Number>(F::u(w[b], 16 * i));
    }
  }
}

template <int kSize>
JUNO_BOTH int dot16(const int16_t* v, const int16_t* q) {
  int sum = 0;
  for (int i = 0; i < kSize; ++i) sum += v[i] * q[i];
  return sum;
}

// One weight row times one row of activations.
template <class F, int kSize>
JUNO_BOTH float dot_row(const Product& p, const WeightRow<int16_t>& w, const PackedRow& x) {
  float groups[kGroups];
  const int64_t blocks = p.blocks();
  for (int g = 0; g < kGroups; ++g) {
    float acc = 0;
    for (int64_t b = quant::group_begin(g, blocks); b < quant::group_begin(g + 1, blocks); ++b) {
      const float s = w.d[b] * x.d[b];
      for (int64_t at = b * p.block; at < (b + 1) * p.block; at += kSize)
        acc = fma(s, static_cast<float>(dot16<kSize>(w.v + at, x.q + at)), acc);
      if constexpr (quant::HasMin<F>) {
        int sum = 0;
        for (int64_t j = b * p.block / 16; j < (b + 1) * p.block / 16; ++j) sum += w.u[j] * x.h[j];
        acc = fma(w.m[b] * x.d[b], static_cast<float>(sum), acc);
      }
    }
    groups[g] = acc;
  }
  return quant::neighbour_tree(groups, kGroups);
}

template <class F, int kSize>
JUNO_BOTH void multiply_few(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  const WeightRow<int16_t> w = weight_row<int16_t>(p, scratch, 0);
  for (int64_t o = first; o < last; ++o) {
    unpack_row<F>(p, o, w);
    for (int t = 0; t < p.tokens; ++t) {
      float y = dot_row<F, kSize>(p, w, packed_row(p, t, 0));
      if (p.planes == 2) y = y + dot_row<F, kSize>(p, w, packed_row(p, t, 1));
      p.y[t * p.outputs + o] = p.bias ? y + p.bias[o] : y;
    }
  }
}

// Group g of kTileRows weight rows times one tile of tokens.
template <class F, int kSize>
JUNO_BOTH void tile_group(const Product& p, const WeightRow<float>* w, const PackedTile& x, int g,
                          Lanes* acc) {
  const int64_t blocks = p.blocks();
  for (int r = 0; r < kTileRows; ++r) acc[r] = all(0);
  for (int64_t b = quant::group_begin(g, blocks); b < quant::group_begin(g + 1, blocks); ++b) {
    const Lanes d = load(x.d + b * kLanes);
    for (int64_t at = b * p.block; at < (b + 1) * p.block; at += kSize) {
      Lanes sum[kTileRows];
      for (int r = 0; r < kTileRows; ++r) sum[r] = all(0);
      for (int64_t i = at; i < at + kSize; ++i) {
        const Lanes q = load(x.q + i * kLanes);
        for (int r = 0; r < kTileRows; ++r) sum[r] = exact_fma(all(w[r].v[i]), q, sum[r]);
      }
      for (int r = 0; r < kTileRows; ++r) acc[r] = fma(mul(all(w[r].d[b]), d), sum[r], acc[r]);
    }
    if constexpr (quant::HasMin<F>) {
      for (int r = 0; r < kTileRows; ++r) {
        Lanes sum = all(0);
        for (int64_t j = b * p.block / 16; j < (b + 1) * p.block / 16; ++j)
          sum = exact_fma(all(w[r].u[j]), load(x.h + j * kLanes), sum);
        acc[r] = fma(mul(all(w[r].m[b]), d), sum, acc[r]);
      }
    }
  }
}

template <class F, int kSize>
[[gnu::noinline]] void multiply_tile(const Product& p, const WeightRow<float>* w, const PackedTile& x,
                                     Lanes* y) {
  Lanes sums[kGroups][kTileRows];
  for (int g = 0; g < kGroups; ++g) tile_group<F, kSize>(p, w, x, g, sums[g]);
  for (int step = 1; step < kGroups; step *= 2)
    for (int g = 0; g < kGroups; g += 2 * step)
      for (int r = 0; r < kTileRows; ++r) sums[g][r] = add(sums[g][r], sums[g + step][r]);
  for (int r = 0; r < kTileRows; ++r) y[r] = sums[0][r];
}

template <class F, int kSize>
JUNO_BOTH void multiply_many(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  for (int64_t o = first; o < last; ++o) unpack_row<F>(p, o, weight_row<float>(p, scratch, o - first));
  for (int item = 0; item < p.pack_items(); ++item) {
    for (int64_t o = first; o < last; o += kTileRows) {
      WeightRow<float> w[kTileRows];  // past the last row, the last row again
      for (int r = 0; r < kTileRows; ++r)
        w[r] = weight_row<float>(p, scratch, (o + r < last ? o + r : last - 1) - first);
      Lanes y[kTileRows], low[kTileRows];
      multiply_tile<F, kSize>(p, w, packed_tile(p, item, 0), y);
      if (p.planes == 2) {
        multiply_tile<F, kSize>(p, w, packed_tile(p, item, 1), low);
        for (int r = 0; r < kTileRows; ++r) y[r] = add(y[r], low[r]);
      }
      for (int r = 0; r < kTileRows && o + r < last; ++r) {
        float column[kLanes];
        store(column, p.bias ? add(y[r], all(p.bias[o + r])) : y[r]);
        for (int lane = 0; lane < kLanes && item * kLanes + lane < p.tokens; ++lane)
          p.y[(item * kLanes + lane) * p.outputs + o + r] = column[lane];
      }
    }
  }
}

template <class F, int kSize>
JUNO_BOTH void multiply_sized(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  const int unit = quant::kUnit<F> < p.block ? quant::kUnit<F> : p.block;
  if constexpr (kSize < quant::kUnit<F>) {
    if (unit > kSize) return multiply_sized<F, 2 * kSize>(p, first, last, scratch);
  }
  if (p.many()) multiply_many<F, kSize>(p, first, last, scratch);
  else multiply_few<F, kSize>(p, first, last, scratch);
}

template <quant::IntegerFormat F>
void multiply(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  multiply_sized<F, 32>(p, first, last, scratch);
}

// Group g of kRows float weight rows times one row of activations: sixteen sums each, element k in sum k
// mod 16.
template <int kRows>
JUNO_BOTH void float_group(const Product& p, const float* const* w, const float* x, int g, float* y) {
  const int64_t end = quant::group_begin(g + 1, p.blocks()) * p.block < p.k
                          ? quant::group_begin(g + 1, p.blocks()) * p.block
                          : p.k;
  int64_t i = quant::group_begin(g, p.blocks()) * p.block;
  Lanes acc[kRows];
  for (int r = 0; r < kRows; ++r) acc[r] = all(0);
  for (; i + kLanes <= end; i += kLanes)
    for (int r = 0; r < kRows; ++r) acc[r] = fma(load(w[r] + i), load(x + i), acc[r]);
  for (int r = 0; r < kRows; ++r) {
    float sums[kLanes];
    store(sums, acc[r]);
    for (int64_t j = i; j < end; ++j) sums[j % kLanes] = juno::fma(w[r][j], x[j], sums[j % kLanes]);
    y[r] = quant::halving_tree(sums, kLanes);
  }
}

template <quant::FloatFormat F>
void multiply(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  constexpr int kRows = 4;
  for (int64_t o = first; o < last; o += kRows) {
    const float* w[kRows];
    for (int r = 0; r < kRows; ++r) {
      const int64_t output = o + r < last ? o + r : last - 1;
      const auto* from = reinterpret_cast<const typename F::Block*>(static_cast<const char*>(p.weight) +
                                                                    output * p.row_bytes);
      float* to = reinterpret_cast<float*>(scratch) + r * p.k;
      for (int64_t i = 0; i < p.k; ++i) to[i] = F::value(from[i], 0);
      w[r] = to;
    }
    for (int t = 0; t < p.tokens; ++t) {
      float sums[kGroups][kRows];
      for (int g = 0; g < kGroups; ++g) float_group<kRows>(p, w, p.x + t * p.k, g, sums[g]);
      for (int r = 0; r < kRows && o + r < last; ++r) {
        float tree[kGroups];
        for (int g = 0; g < kGroups; ++g) tree[g] = sums[g][r];
        const float y = quant::neighbour_tree(tree, kGroups);
        p.y[t * p.outputs + o + r] = p.bias ? y + p.bias[o + r] : y;
      }
    }
  }
}

template <class... Fs>
constexpr int count_of(quant::List<Fs...>) {
  return sizeof...(Fs);
}
struct FormatTable {
  FormatKernels entries[count_of(quant::Formats{})];
};
template <class... Fs>
constexpr FormatTable format_table(quant::List<Fs...>) {
  return {{{Fs::gguf_id, multiply<Fs>}...}};
}

}  // namespace
}  // namespace juno::cpu
