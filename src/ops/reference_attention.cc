// SPDX-License-Identifier: Apache-2.0
// Attention of the reference: docs/numerics.md §6.
#include <algorithm>

#include "base/half.h"
#include "base/math.h"
#include "ops/reference.h"
#include "ops/rope_table.h"
#include "quant/dot.h"

namespace juno::ops {
namespace {

constexpr int kRun = 8;           // elements of a dot product added in order
constexpr int kForgotten = -100;  // a weight this many powers of two below the largest is 0

float dot(const float* q, const uint16_t* k, int n) {
  float runs[1024 / kRun] = {};
  int count = 1;
  while (count * kRun < n) count *= 2;
  for (int i = 0; i < n; ++i) runs[i / kRun] = fma(q[i], f16_to_f32(k[i]), runs[i / kRun]);
  return quant::halving_tree(runs, count);
}

float score(float dot, const ScoreScale& scale) {
  return scale.capped ? tanh(dot * scale.before) * scale.after : dot * scale.after;
}

// 2^n for n <= 0.
float power(int32_t n) { return n < kForgotten ? 0.0f : float_of(static_cast<uint32_t>(n + 127) << 23); }

// What the positions seen so far come to: the sum of 2^(t - n), and that sum weighted by the values.
struct Sums {
  int32_t n = 0;
  float l = 0;
  float* o;  // [value_dim]
};

// The slots [begin, end) of a chunk that the mask allows; k and v point at slot 0.
struct Chunk {
  const uint16_t *k, *v;
  int begin, end;
};

void attend_chunk(Sums& sums, const float* q, const Chunk& chunk, const Attention& how,
                  const ScoreScale& scale) {
  const auto [k, v, begin, end] = chunk;
  int32_t n[kPagePositions];
  float weight[kPagePositions] = {}, tree[kPagePositions];
  sums.n = INT32_MIN;
  for (int s = begin; s < end; ++s) {
    const float t = score(dot(q, k + s * how.key_dim, how.key_dim), scale);
    n[s] = rne_int(t);
    weight[s] = exp2_poly(t - rne(t));
    sums.n = std::max(sums.n, n[s]);
  }
  for (int s = begin; s < end; ++s) weight[s] = weight[s] * power(n[s] - sums.n);
  std::copy_n(weight, kPagePositions, tree);
  sums.l = quant::halving_tree(tree, kPagePositions);
  std::fill_n(sums.o, how.value_dim, 0.0f);
  for (int s = begin; s < end; ++s)
    for (int d = 0; d < how.value_dim; ++d)
      sums.o[d] = fma(weight[s], f16_to_f32(v[s * how.value_dim + d]), sums.o[d]);
}

void merge(Sums& all, const Sums& chunk, int dim) {
  const int32_t n = std::max(all.n, chunk.n);
  const float keep = power(all.n - n), take = power(chunk.n - n);
  all.n = n;
  all.l = all.l * keep + chunk.l * take;
  for (int d = 0; d < dim; ++d) all.o[d] = all.o[d] * keep + chunk.o[d] * take;
}

uint16_t* cache_row(const Tensor& pages, int32_t page, int head, int heads, int slot) {
  const int64_t row = (int64_t{page} * heads + head) * kPagePositions + slot;
  return static_cast<uint16_t*>(pages.data) + row * pages.cols();
}

void store(const Tensor& x, const Tensor& pages, const Run& run, int heads) {
  const int64_t dim = pages.cols();
  for (int32_t r = 0; r < run.rows; ++r) {
    const int32_t position = run.position + r;
    for (int h = 0; h < heads; ++h) {
      uint16_t* to =
          cache_row(pages, run.pages[position / kPagePositions], h, heads, position % kPagePositions);
      const float* from = x.f32() + (run.first_row + r) * x.cols() + h * dim;
      for (int64_t i = 0; i < dim; ++i) to[i] = f32_to_f16(from[i]);
    }
  }
}

}  // namespace

size_t Reference::attention_scratch(const Attend& a) const {
  return 2 * static_cast<size_t>(a.how.value_dim) * sizeof(float);
}

void Reference::do_attention(const Attend& a, std::byte* scratch) {
  const ScoreScale scale = score_scale(a.how);
  const int key_dim = a.how.key_dim, value_dim = a.how.value_dim, heads = a.heads(), kv_heads = a.kv_heads();
  Sums all{.o = reinterpret_cast<float*>(scratch)}, chunk{.o = all.o + value_dim};
  for (const Run& run : a.kv.runs) {
    store(a.k, a.kv.layer.keys, run, kv_heads);
    store(a.v, a.kv.layer.values, run, kv_heads);
    for (int32_t r = 0; r < run.rows; ++r) {
      const int32_t position = run.position + r;
      const int32_t first = a.how.window ? std::max(0, position - a.how.window + 1) : 0;
      for (int h = 0; h < heads; ++h) {
        const float* q = a.q.f32() + (run.first_row + r) * a.q.cols() + h * key_dim;
        const int kv_head = h / (heads / kv_heads);
        for (int32_t c = first / kPagePositions; c <= position / kPagePositions; ++c) {
          const int32_t start = c * kPagePositions;
          Sums& into = start <= first ? all : chunk;  // the first chunk is where the merge begins
          const Chunk seen{.k = cache_row(a.kv.layer.keys, run.pages[c], kv_head, kv_heads, 0),
                           .v = cache_row(a.kv.layer.values, run.pages[c], kv_head, kv_heads, 0),
                           .begin = std::max(first - start, 0),
                           .end = std::min(position - start + 1, kPagePositions)};
          attend_chunk(into, q, seen, a.how, scale);
          if (&into == &chunk) merge(all, chunk, value_dim);
        }
        float* y = a.y.f32() + (run.first_row + r) * a.y.cols() + h * value_dim;
        for (int d = 0; d < value_dim; ++d) y[d] = all.o[d] / all.l;
      }
    }
  }
}

}  // namespace juno::ops
