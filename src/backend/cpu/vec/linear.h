// SPDX-License-Identifier: Apache-2.0
// Products with weights of every format: docs/numerics.md §3 and §4. Included by vec/kernels.cc only.
#pragma once
#include "backend/cpu/vec/float_panels.h"
#include "backend/cpu/vec/pack.h"
#include "backend/cpu/vec/vocabulary.h"
#include "quant/dot.h"
#include "quant/formats.h"
#if defined(JUNO_PANELS)
#include "backend/cpu/vec/panel.h"
#endif

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

template <class F>
JUNO_BOTH void unpack_numbers(const typename F::Block& block, int16_t* v) {
  quant::unpack<F>(block, v);
}
template <class F>
JUNO_BOTH void unpack_numbers(const typename F::Block& block, float* v) {
  int16_t whole[F::block_size];
  quant::unpack<F>(block, whole);
  for (int i = 0; i < F::block_size; ++i) v[i] = static_cast<float>(whole[i]);
}

template <class F, int kBlock, class Number>
JUNO_BOTH void unpack_row(const Product& p, int64_t output, const WeightRow<Number>& to) {
  constexpr int kSize = F::block_size, kPerBlock = kSize / kBlock, kSums = kSize / quant::kSumSize;
  const auto* w =
      reinterpret_cast<const typename F::Block*>(static_cast<const char*>(p.weight) + output * p.row_bytes);
  const int64_t blocks = p.k / kSize;
  for (int64_t b = 0; b < blocks; ++b) unpack_numbers<F>(w[b], to.v + b * kSize);
  for (int64_t b = 0; b < blocks; ++b)
    for (int i = 0; i < kPerBlock; ++i) to.d[b * kPerBlock + i] = F::d(w[b]);
  if constexpr (quant::HasMin<F>) {
    for (int64_t b = 0; b < blocks; ++b)
      for (int i = 0; i < kPerBlock; ++i) to.m[b * kPerBlock + i] = F::m(w[b]);
    for (int64_t b = 0; b < blocks; ++b)
      for (int i = 0; i < kSums; ++i)
        to.u[b * kSums + i] = static_cast<Number>(F::u(w[b], quant::kSumSize * i));
  }
}

template <int kSize>
JUNO_BOTH int dot16(const int16_t* v, const int16_t* q) {
  int sum = 0;
  for (int i = 0; i < kSize; ++i) sum += v[i] * q[i];
  return sum;
}

// One weight row times one row of activations.
template <class F, int kBlock>
JUNO_BOTH float dot_row(const Product& p, const WeightRow<int16_t>& w, const PackedRow& x) {
  constexpr int kSize = kStep<F, kBlock>, kSums = kBlock / quant::kSumSize;
  float groups[kGroups];
  const int64_t blocks = p.k / kBlock;
  for (int g = 0; g < kGroups; ++g) {
    float acc = 0;
    for (int64_t b = quant::group_begin(g, blocks); b < quant::group_begin(g + 1, blocks); ++b) {
      const float s = w.d[b] * x.d[b];
      for (int i = 0; i < kBlock; i += kSize)
        acc = fma(s, static_cast<float>(dot16<kSize>(w.v + b * kBlock + i, x.q + b * kBlock + i)), acc);
      if constexpr (quant::HasMin<F>) {
        int sum = 0;
        for (int j = 0; j < kSums; ++j) sum += w.u[b * kSums + j] * x.h[b * kSums + j];
        acc = fma(w.m[b] * x.d[b], static_cast<float>(sum), acc);
      }
    }
    groups[g] = acc;
  }
  return quant::neighbour_tree(groups, kGroups);
}

template <class F, int kBlock>
JUNO_BOTH void multiply_few(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  const WeightRow<int16_t> w = weight_row<int16_t>(p, scratch, 0);
  for (int64_t o = first; o < last; ++o) {
    unpack_row<F, kBlock>(p, o, w);
    for (int t = 0; t < p.tokens; ++t) {
      float y = 0;
      for (int plane = 0; plane < p.planes; ++plane) {
        const float part = dot_row<F, kBlock>(p, w, packed_row(p, t, plane));
        y = plane == 0 ? part : y + part;
      }
      p.y[t * p.outputs + o] = p.bias ? y + p.bias[o] : y;
    }
  }
}

// Group g of kTileRows weight rows times one tile of tokens.
template <class F, int kBlock>
JUNO_BOTH void tile_group(const Product& p, const WeightRow<float>* w, const PackedTile& x, int g,
                          Lanes* acc) {
  constexpr int kSize = kStep<F, kBlock>, kSums = kBlock / quant::kSumSize;
  const int64_t blocks = p.k / kBlock;
  for (int r = 0; r < kTileRows; ++r) acc[r] = all(0);
  for (int64_t b = quant::group_begin(g, blocks); b < quant::group_begin(g + 1, blocks); ++b) {
    const Lanes d = load(x.d + b * kLanes);
    for (int64_t at = b * kBlock; at < (b + 1) * kBlock; at += kSize) {
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
        for (int64_t j = b * kSums; j < (b + 1) * kSums; ++j)
          sum = exact_fma(all(w[r].u[j]), load(x.h + j * kLanes), sum);
        acc[r] = fma(mul(all(w[r].m[b]), d), sum, acc[r]);
      }
    }
  }
}

template <class F, int kBlock>
[[gnu::noinline]] void multiply_tile(const Product& p, const WeightRow<float>* w, const PackedTile& x,
                                     Lanes* y) {
  Lanes sums[kGroups][kTileRows];
  for (int g = 0; g < kGroups; ++g) tile_group<F, kBlock>(p, w, x, g, sums[g]);
  for (int step = 1; step < kGroups; step *= 2)
    for (int g = 0; g < kGroups; g += 2 * step)
      for (int r = 0; r < kTileRows; ++r) sums[g][r] = add(sums[g][r], sums[g + step][r]);
  for (int r = 0; r < kTileRows; ++r) y[r] = sums[0][r];
}

template <class F, int kBlock>
JUNO_BOTH void multiply_many(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  for (int64_t o = first; o < last; ++o)
    unpack_row<F, kBlock>(p, o, weight_row<float>(p, scratch, o - first));
  for (int item = 0; item < p.pack_items(); ++item) {
    for (int64_t o = first; o < last; o += kTileRows) {
      WeightRow<float> w[kTileRows];  // past the last row, the last row again
      for (int r = 0; r < kTileRows; ++r)
        w[r] = weight_row<float>(p, scratch, (o + r < last ? o + r : last - 1) - first);
      Lanes y[kTileRows], low[kTileRows];
      multiply_tile<F, kBlock>(p, w, packed_tile(p, item, 0), y);
      if (p.planes == 2) {
        multiply_tile<F, kBlock>(p, w, packed_tile(p, item, 1), low);
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

template <class F, int kBlock>
JUNO_BOTH void multiply_unpacked(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  if (p.many()) multiply_many<F, kBlock>(p, first, last, scratch);
  else multiply_few<F, kBlock>(p, first, last, scratch);
}

template <class F, int kBlock>
[[gnu::noinline]] void multiply_blocks(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
#if defined(JUNO_PANELS)
  if constexpr (HasRaw<F>) multiply_panels<F, kBlock>(p, first, last, scratch);
  else multiply_unpacked<F, kBlock>(p, first, last, scratch);
#else
  multiply_unpacked<F, kBlock>(p, first, last, scratch);
#endif
}

template <quant::IntegerFormat F>
void multiply(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  if constexpr (F::block_size == 256) {
    if (p.block == 128) return multiply_blocks<F, 128>(p, first, last, scratch);
    if (p.block == 64) return multiply_blocks<F, 64>(p, first, last, scratch);
  }
  multiply_blocks<F, 32>(p, first, last, scratch);
}

// What the activations for a format are packed by.
template <class F>
constexpr FormatKernels kernels_of_format() {
  FormatKernels k{.gguf_id = F::gguf_id,
                  .panels = false,
                  .cell = 32,
                  .times = 0,
                  .widest = 1,
                  .rows = 0,
                  .turn = nullptr,
                  .turn_back = nullptr,
                  .multiply = multiply<F>};
#if defined(JUNO_PANELS)
  if constexpr (HasRaw<F>) {
    k.panels = true;
    k.cell = Raw<F>::cell;
    k.times = Raw<F>::minimum == Minimum::kOne ? 1 : -Raw<F>::offset;
    k.widest = kWidest<Raw<F>::is_signed>;
  }
  if constexpr (Turnable<F>) {
    k.rows = kPanelRows;
    k.turn = turn_panel<F>;
    k.turn_back = turn_back<F>;
  }
#endif
  return k;
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
  return {{kernels_of_format<Fs>()...}};
}

}  // namespace
}  // namespace juno::cpu
