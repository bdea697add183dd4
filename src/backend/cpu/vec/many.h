// SPDX-License-Identifier: Apache-2.0
// Integer products of many tokens: tokens side by side, weight rows unpacked to bytes once for all of them.
// The order is that of docs/numerics.md §3. Included by the files of vec/ only.
#pragma once
#include "backend/cpu/vec/cells.h"
#include "backend/cpu/vec/pack.h"
#include "quant/dot.h"

#if defined(JUNO_WIDE)

namespace juno::cpu {
namespace {

inline constexpr int kBlockRows = 4, kVectors = 2;  // of one pass over a group: what registers hold
inline constexpr int kTileItems = kVectors * kVector / kLanes;  // tiles of kLanes tokens in a pass
inline constexpr int kLevels = 3;                               // sums that wait for their neighbour

// A weight row: bytes, and all scales as numbers.
struct ByteRow {
  uint8_t* q;    // [k]
  float *d, *m;  // [blocks]
  float *s, *u;  // [k/cell]
};

JUNO_BOTH ByteRow byte_row(const Product& p, std::byte* scratch, int64_t index) {
  const int64_t floats = 2 * p.blocks() + 2 * (p.k / p.cell);
  const int64_t bytes = (p.k + floats * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64;
  auto* d = reinterpret_cast<float*>(scratch + index * bytes);
  float* s = d + 2 * p.blocks();
  return {reinterpret_cast<uint8_t*>(d + floats), d, d + p.blocks(), s, s + p.k / p.cell};
}

template <class F, int kBlock>
JUNO_BOTH void unpack_scales(const Product& p, const uint8_t* row, const ByteRow& to) {
  constexpr int kPerBlock = F::block_size / kBlock;
  const auto* w = reinterpret_cast<const typename F::Block*>(row);
  for (int64_t b = 0; b < p.k / F::block_size; ++b) {
    float d;
    if constexpr (HalfScale<F>) d = widen_half(w[b].d);
    else d = F::d(w[b]);
    for (int i = 0; i < kPerBlock; ++i) to.d[b * kPerBlock + i] = d;
    if constexpr (quant::HasMin<F>) {
      const float m = widen_half(half_minimum<F>(w[b]));
      for (int i = 0; i < kPerBlock; ++i) to.m[b * kPerBlock + i] = kNegativeMinimum<F> ? -m : m;
    }
    if constexpr (F::block_size == 256) {
      constexpr int kSubs = 256 / Cells<F>::sub;
      Eight s[2], u[2];
      Cells<F>::scales(w[b], s, u);
      for (int i = 0; i < kSubs / 8; ++i) {
        widen8(s[i], to.s + b * kSubs + 8 * i);
        if constexpr (quant::HasMin<F>) widen8(u[i], to.u + b * kSubs + 8 * i);
      }
    }
  }
}

template <class F, int kBlock>
JUNO_BOTH void unpack_rows(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  for (int64_t o = first; o < last; o += kPair) {
    const uint8_t *from[kPair], *block[kPair];
    uint8_t* to[kPair];
    for (int r = 0; r < kPair; ++r) {
      const int64_t own = o + r < last ? o + r : o;
      const ByteRow row = byte_row(p, scratch, own - first);
      from[r] = static_cast<const uint8_t*>(p.weight) + own * p.row_bytes;
      to[r] = row.q;
      unpack_scales<F, kBlock>(p, from[r], row);
    }
    for (int64_t b = 0; b < p.k / F::block_size; ++b) {
      for (int r = 0; r < kPair; ++r)
        block[r] = from[r] + b * static_cast<int64_t>(sizeof(typename F::Block));
#pragma GCC unroll 8
      for (int c = 0; c < F::block_size / 32; ++c) {
        const Bytes bytes = cell<F>(block, c);
        store_rows(to, b * F::block_size + c * 32, Cells<F>::is_signed ? unsign(bytes) : bytes);
      }
    }
  }
}

// kVector tokens: their part of a tile.
struct Column {
  const int8_t* q;  // 4 elements of each token, the next 4 kLanes * 4 bytes on
  const float* d;   // kLanes apart
  const int32_t* h;
};

// What a format's bytes are too large by here.
template <class F>
inline constexpr int kTileOffset = Cells<F>::is_signed ? kSignedOffset : Cells<F>::offset;

// sums[r][v]: cell `at` / kCell of the rows times that of the columns.
template <class F>
JUNO_BOTH void tile_cell(const ByteRow* w, const Column* x, int64_t at, Ints (*sums)[kVectors]) {
  constexpr int kCell = cell_of<F>();
  constexpr int kAllowed = kRunOf<Cells<F>::is_signed, kLargestByte<F>>;
  constexpr int kRun = kAllowed * 4 < kCell ? kAllowed * 4 : kCell;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    sums[0][v] = no_ints();
    if constexpr (kTileOffset<F> != 0)
      sums[0][v] = minus(no_ints(), times(load_ints(x[v].h + at / kCell * kLanes), kTileOffset<F>));
#pragma GCC unroll 4
    for (int r = 1; r < kBlockRows; ++r) sums[r][v] = sums[0][v];
  }
#pragma GCC unroll 8
  for (int run = 0; run < kCell; run += kRun) {
    Ints parts[kBlockRows][kVectors];
#pragma GCC unroll 8
    for (int i = run; i < run + kRun; i += 4) {
      Bytes q[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) q[v] = load_bytes(x[v].q + (at + i) * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < kBlockRows; ++r) {
        const Bytes four = four_bytes(w[r].q + at + i);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v)
          parts[r][v] = add_products<Cells<F>::is_signed>(i == run ? no_ints() : parts[r][v], four, q[v]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kBlockRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = finished(sums[r][v], parts[r][v]);
  }
}

// Units of one block: acc = fma(s, I, acc).
template <class F, int kBlock>
JUNO_BOTH void tile_units(const ByteRow* w, const Column* x, int64_t b, const Floats* dx,
                          Floats (*acc)[kVectors]) {
  constexpr int kCell = cell_of<F>(), kSize = kStep<F, kBlock>;
  for (int64_t at = b * kBlock; at < (b + 1) * kBlock; at += kSize) {
    Floats whole[kBlockRows][kVectors] = {};
    for (int64_t c = at; c < at + kSize; c += kCell) {
      Ints sums[kBlockRows][kVectors];
      tile_cell<F>(w, x, c, sums);
#pragma GCC unroll 4
      for (int r = 0; r < kBlockRows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const Floats sum = to_floats(sums[r][v]);
          if constexpr (F::block_size == 32) whole[r][v] = sum;
          else whole[r][v] = wide_fma(all_floats(w[r].s[c / kCell]), sum, whole[r][v]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kBlockRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        acc[r][v] = wide_fma(wide_mul(all_floats(w[r].d[b]), dx[v]), whole[r][v], acc[r][v]);
  }
}

// acc = fma(m dx, M, acc).
template <class F, int kBlock>
JUNO_BOTH void tile_minimum(const ByteRow* w, const Column* x, int64_t b, const Floats* dx,
                            Floats (*acc)[kVectors]) {
  constexpr int kCell = cell_of<F>(), kCells = kBlock / kCell;
  Floats whole[kBlockRows][kVectors] = {};
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Floats h = to_floats(load_ints(x[v].h + (b * kCells + c) * kLanes));
#pragma GCC unroll 4
      for (int r = 0; r < kBlockRows; ++r) {
        if constexpr (F::block_size == 32) whole[r][v] = h;
        else whole[r][v] = wide_fma(all_floats(w[r].u[b * kCells + c]), h, whole[r][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kBlockRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      acc[r][v] = wide_fma(wide_mul(all_floats(w[r].m[b]), dx[v]), whole[r][v], acc[r][v]);
}

// Group g of kBlockRows rows and the tokens of the columns, added into the tree: sums [kLevels][kBlockRows]
// [kVectors] holds those that wait for a neighbour; after the last group the result is in its first level.
template <class F, int kBlock>
[[gnu::noinline]] void tile_group(const Product& p, const ByteRow* w, const Column* x, int g, float* sums) {
  Floats acc[kBlockRows][kVectors];
  for (auto& row : acc)
    for (Floats& sum : row) sum = no_floats();
  const int64_t end = quant::group_begin(g + 1, p.blocks());
  for (int64_t b = quant::group_begin(g, p.blocks()); b < end; ++b) {
    const Floats dx[kVectors] = {wide_load(x[0].d + b * kLanes), wide_load(x[1].d + b * kLanes)};
    tile_units<F, kBlock>(w, x, b, dx, acc);
    if constexpr (quant::HasMin<F>) tile_minimum<F, kBlock>(w, x, b, dx, acc);
  }
  int level = 0;
  for (; g >> level & 1; ++level)
    for (int i = 0; i < kBlockRows * kVectors; ++i) {
      Floats& sum = acc[i / kVectors][i % kVectors];
      sum = wide_add(wide_load(sums + (level * kBlockRows * kVectors + i) * kVector), sum);
    }
  if (level == kLevels) level = 0;
  for (int i = 0; i < kBlockRows * kVectors; ++i)
    wide_store(sums + (level * kBlockRows * kVectors + i) * kVector, acc[i / kVectors][i % kVectors]);
}

struct TilePass {
  int64_t first, last;  // outputs
  int item;             // the first tile
  std::byte* rows;      // unpacked
  float* sums;          // [rows / kBlockRows][kLevels][kBlockRows][kVectors][kVector]
};
inline constexpr int kPassFloats = kLevels * kBlockRows * kVectors * kVector;

template <class F, int kBlock>
JUNO_BOTH void multiply_columns(const Product& p, const TilePass& pass, int plane) {
  Column x[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const int item = pass.item + v * kVector / kLanes, lane = v * kVector % kLanes;
    const ByteTile tile = byte_tile(p, item < p.pack_items() ? item : pass.item, plane);
    x[v] = {tile.q + lane * 4, tile.d + lane, tile.h + lane};
  }
  for (int g = 0; g < quant::kGroups; ++g) {
    float* sums = pass.sums;
    for (int64_t o = pass.first; o < pass.last; o += kBlockRows, sums += kPassFloats) {
      ByteRow w[kBlockRows];  // past the last row, the last row again
      for (int r = 0; r < kBlockRows; ++r)
        w[r] = byte_row(p, pass.rows, (o + r < pass.last ? o + r : pass.last - 1) - pass.first);
      tile_group<F, kBlock>(p, w, x, g, sums);
    }
  }
}

// y of plane 0, or with that of plane 1 and the bias added.
JUNO_BOTH void store_tile(const Product& p, const TilePass& pass, int plane) {
  const int first = pass.item * kLanes;
  const int count = p.tokens - first < kVectors * kVector ? p.tokens - first : kVectors * kVector;
  const bool bias = p.bias && plane + 1 == p.planes;
  for (int t = 0; t < count; ++t) {
    float* y = p.y + (first + t) * p.outputs + pass.first;
    for (int row = 0; row < pass.last - pass.first; ++row) {
      const float* from = pass.sums + row / kBlockRows * kPassFloats + row % kBlockRows * kVectors * kVector;
      const float sum = plane == 0 ? from[t] : y[row] + from[t];
      y[row] = bias ? sum + p.bias[pass.first + row] : sum;
    }
  }
}

template <class F, int kBlock>
JUNO_BOTH void multiply_tiles(const Product& p, int64_t first, int64_t last, std::byte* scratch) {
  unpack_rows<F, kBlock>(p, first, last, scratch);
  const auto rows = reinterpret_cast<std::byte*>(byte_row(p, scratch, kItemRows).d);
  for (int item = 0; item < p.pack_items(); item += kTileItems) {
    const TilePass pass{first, last, item, scratch, reinterpret_cast<float*>(rows)};
    for (int plane = 0; plane < p.planes; ++plane) {
      multiply_columns<F, kBlock>(p, pass, plane);
      store_tile(p, pass, plane);
    }
  }
}

}  // namespace
}  // namespace juno::cpu

#endif
