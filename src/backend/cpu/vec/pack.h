// SPDX-License-Identifier: Apache-2.0
// Activations quantised (docs/numerics.md §2) and laid out for the products. Included by vec/kernels.cc only.
#pragma once
#include "backend/cpu/kernels.h"
#include "quant/activation.h"

namespace juno::cpu {
namespace {

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

void pack(const Product& p, int item, std::byte* scratch) {
  auto* rest = reinterpret_cast<float*>(scratch);
  auto* d = rest + p.k;
  auto* q = reinterpret_cast<int16_t*>(d + p.blocks());
  for (int lane = 0; lane < (p.many() ? kLanes : 1); ++lane) {
    const int token = p.many() ? item * kLanes + lane : item;
    const float* x = p.x + token * p.k;
    for (int plane = 0; plane < p.planes; ++plane) {
      std::byte* to = packed_at(p, item, plane);
      if (token >= p.tokens) {
        scatter(p, to, lane, nullptr, nullptr);
        continue;
      }
      if (plane == 1) {
        residual(x, p.k, p.block, q, d, rest);
        x = rest;
      }
      if (p.many()) {
        quantise(x, p.k, p.block, q, d);
        scatter(p, to, lane, q, d);
        continue;
      }
      auto* row_d = reinterpret_cast<float*>(to);
      auto* row_q = reinterpret_cast<int16_t*>(row_d + p.blocks());
      quantise(x, p.k, p.block, row_q, row_d);
      for (int64_t j = 0; j < p.k / 16; ++j) row_q[p.k + j] = static_cast<int16_t>(sum16(row_q + 16 * j));
      for (int64_t i = 0; i < p.k; ++i) q[i] = row_q[i];
      for (int64_t b = 0; b < p.blocks(); ++b) d[b] = row_d[b];
    }
  }
}

}  // namespace
}  // namespace juno::cpu
