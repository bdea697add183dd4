// SPDX-License-Identifier: Apache-2.0
// Activations quantised (docs/numerics.md §2) and laid out for the products. Included by vec/kernels.cc only.
#pragma once
#include <cstring>

#include "backend/cpu/kernels.h"
#include "backend/cpu/vec/vocabulary.h"
#include "quant/activation.h"
#include "quant/format.h"

namespace juno::cpu {
namespace {

// Elements of an activation block whose products are added up as integers.
template <class F, int kBlock>
inline constexpr int kStep = quant::kUnit<F> < kBlock ? quant::kUnit<F> : kBlock;

// One row, or one tile of kLanes rows side by side: what `packed` holds of an item and a plane.
struct PackedRow {
  const int16_t* q;  // [k]
  const float* d;    // [blocks]
  const int16_t* h;  // [k/16]
};
struct PackedTile {
  const float* q;  // [k, kLanes]
  const float* d;  // [blocks, kLanes]
  const float* h;  // [k/16, kLanes]
};

JUNO_BOTH std::byte* packed_at(const Product& p, int item, int plane) {
  return p.packed + (static_cast<size_t>(item) * p.planes + plane) * p.packed_bytes();
}
JUNO_BOTH PackedRow packed_row(const Product& p, int item, int plane) {
  const auto* d = reinterpret_cast<const float*>(packed_at(p, item, plane));
  const auto* q = reinterpret_cast<const int16_t*>(d + p.blocks());
  return {q, d, q + p.k};
}
// A block of a row of activations as panels read it (Product::record_bytes): where its parts are.
template <class S>
struct RecordOf {
  static constexpr int scale = S::block * S::width, sums = scale + 4, shorts = sums + S::block / S::cell * 4;
  static constexpr int bytes = Product::record_bytes(S::block, S::cell, S::width);
};
// index: token * planes + plane.
JUNO_BOTH std::byte* record_row(const Product& p, int64_t index) {
  return p.packed + index * p.packed_bytes();
}

JUNO_BOTH PackedTile packed_tile(const Product& p, int item, int plane) {
  const auto* q = reinterpret_cast<const float*>(packed_at(p, item, plane));
  return {q, q + p.k * kLanes, q + (p.k + p.blocks()) * kLanes};
}

// The largest magnitude, or NaN when there is one. Magnitudes order like their bits, which, unlike floats,
// have a fast maximum.
JUNO_BOTH float largest(const float* x, int n) {
  uint32_t top = 0;
  for (int i = 0; i < n; ++i) {
    const uint32_t bits = bits_of(x[i]) & 0x7fffffffu;
    top = bits > top ? bits : top;
  }
  return float_of(top);
}

// x [k] -> q [k], d [blocks]; the same as quant::quantise_activations, faster.
JUNO_BOTH void quantise(const float* x, int64_t k, int block, int16_t* q, float* d) {
  for (int64_t b = 0; b * block < k; ++b) {
    const float a = largest(x + b * block, block);
    const bool zero = a < 0x1p-100f;
    const float r = zero ? 0.0f : quant::kMaxQ / a;
    d[b] = zero ? 0.0f : a / quant::kMaxQ;
    for (int64_t i = b * block; i < (b + 1) * block; ++i) q[i] = static_cast<int8_t>(rne_int(x[i] * r));
  }
}

JUNO_BOTH void residual(const float* x, int64_t k, int block, const int16_t* q, const float* d, float* rest) {
  for (int64_t b = 0; b * block < k; ++b)
    for (int64_t i = b * block; i < (b + 1) * block; ++i)
      rest[i] = fma(-d[b], static_cast<float>(q[i]), x[i]);
}

JUNO_BOTH int sum16(const int16_t* q) {
  int sum = 0;
  for (int i = 0; i < quant::kSumSize; ++i) sum += q[i];
  return sum;
}

// Lane `lane` of a tile. A lane without a token is made of zeros.
JUNO_BOTH void scatter(const Product& p, std::byte* tile, int lane, const int16_t* q, const float* d) {
  auto* out = reinterpret_cast<float*>(tile) + lane;
  for (int64_t i = 0; i < p.k; ++i) out[i * kLanes] = q ? static_cast<float>(q[i]) : 0.0f;
  out += p.k * kLanes;
  for (int64_t b = 0; b < p.blocks(); ++b) out[b * kLanes] = q ? d[b] : 0.0f;
  out += p.blocks() * kLanes;
  for (int64_t j = 0; j < p.k / 16; ++j) out[j * kLanes] = q ? static_cast<float>(sum16(q + 16 * j)) : 0.0f;
}

#if !defined(JUNO_QUANTISE)
JUNO_BOTH uint32_t largest32(const float* x) { return bits_of(largest(x, 32)); }
JUNO_BOTH void quantise32(const float* x, float r, int8_t* q) {
  for (int i = 0; i < 32; ++i) q[i] = static_cast<int8_t>(rne_int(x[i] * r));
}
JUNO_BOTH void sums16(const int8_t* q, int32_t* to) {
  for (int j = 0; j < 2; ++j) {
    to[j] = 0;
    for (int i = 0; i < 16; ++i) to[j] += q[16 * j + i];
  }
}
#endif

// A block of x as panels read it, and its integers.
JUNO_BOTH void lay_record(const Product& p, const float* x, int8_t* q, std::byte* to) {
  uint32_t top = 0;
  for (int i = 0; i < p.block; i += 32) {
    const uint32_t own = largest32(x + i);
    top = own > top ? own : top;
  }
  const float a = float_of(top);
  const bool zero = a < 0x1p-100f;
  const float r = zero ? 0.0f : quant::kMaxQ / a, d = zero ? 0.0f : a / quant::kMaxQ;
  for (int i = 0; i < p.block; i += 32) {
    quantise32(x + i, r, q + i);
#if defined(JUNO_WIDE)
    if (p.width() == 2) widen32(q + i, to + 2 * i);
#endif
  }
  std::byte* const scale = to + p.block * p.width();
  std::memcpy(scale, &d, sizeof d);

  std::byte* sums = scale + 4;
  std::byte* shorts = sums + p.block / p.cell * 4;
  for (int i = 0; i < p.block; i += 32) {
    int32_t own[2], times[2];
    sums16(q + i, own);
    if (p.cell == 32) own[0] += own[1];
    const int16_t as_shorts[2] = {static_cast<int16_t>(p.times < 0 ? -own[0] : own[0]),
                                  static_cast<int16_t>(p.times < 0 ? -own[1] : own[1])};
    times[0] = own[0] * p.times;
    times[1] = own[1] * p.times;
    const int cells = 32 / p.cell;
    std::memcpy(sums + i / p.cell * 4, times, cells * sizeof(int32_t));
    std::memcpy(shorts + i / p.cell * 2, as_shorts, cells * sizeof(int16_t));
  }
}

// rest [k]: room for what is left beside plane 0.
JUNO_BOTH void lay_records(const Product& p, int token, float* rest) {
  const float* x = p.x + token * p.k;
  int8_t bytes[128];  // the largest block
  for (int plane = 0; plane < p.planes; ++plane) {
    std::byte* to = record_row(p, static_cast<int64_t>(token) * p.planes + plane);
    for (int64_t b = 0; b < p.blocks(); ++b) {
      auto* const q = p.width() == 1 ? reinterpret_cast<int8_t*>(to) : bytes;
      lay_record(p, x + b * p.block, q, to);
      if (plane + 1 < p.planes) {
        const float d = float_at(to + p.block * p.width());
        for (int64_t i = 0; i < p.block; ++i)
          rest[b * p.block + i] = fma(-d, static_cast<float>(q[i]), x[b * p.block + i]);
      }
      to += Product::record_bytes(p.block, p.cell, p.width());
    }
    x = rest;
  }
}

JUNO_BOTH void lay_row(const Product& p, int item, int plane, const int16_t* q, const float* d) {
  auto* row_d = reinterpret_cast<float*>(packed_at(p, item, plane));
  auto* row_q = reinterpret_cast<int16_t*>(row_d + p.blocks());
  for (int64_t b = 0; b < p.blocks(); ++b) row_d[b] = d[b];
  for (int64_t i = 0; i < p.k; ++i) row_q[i] = q[i];
  for (int64_t j = 0; j < p.k / 16; ++j) row_q[p.k + j] = static_cast<int16_t>(sum16(q + 16 * j));
}

void pack(const Product& p, int item, std::byte* scratch) {
  auto* rest = reinterpret_cast<float*>(scratch);
  auto* d = rest + p.k;
  auto* q = reinterpret_cast<int16_t*>(d + p.blocks());
  if (p.panels) return lay_records(p, item, rest);
  for (int lane = 0; lane < (p.many() ? kLanes : 1); ++lane) {
    const int token = p.many() ? item * kLanes + lane : item;
    const float* x = p.x + token * p.k;
    for (int plane = 0; plane < p.planes; ++plane) {
      if (token >= p.tokens) {
        scatter(p, packed_at(p, item, plane), lane, nullptr, nullptr);
        continue;
      }
      if (plane == 1) {
        residual(x, p.k, p.block, q, d, rest);
        x = rest;
      }
      quantise(x, p.k, p.block, q, d);
      if (p.many()) scatter(p, packed_at(p, item, plane), lane, q, d);
      else lay_row(p, item, plane, q, d);
    }
  }
}

}  // namespace
}  // namespace juno::cpu
