// SPDX-License-Identifier: Apache-2.0
// The reference against evaluations in double that know nothing of its order. Bounds: u = 2^-24 is half the
// distance of neighbouring floats at 1; a sum of n rounded terms is off by at most n u times the sum of their
// magnitudes.
#include "ops/reference.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "ops/harness.h"
#include "ops/route.h"

namespace juno::ops {
namespace {

using test::Bits;
using test::Cache;
using test::Memory;
using test::Positions;
using test::run;

constexpr double kU = 0x1p-24;

double at(const Bits& bits, int64_t i) { return __builtin_bit_cast(float, bits[static_cast<size_t>(i)]); }

TEST(Reference, NormsAreWithinTheirRoundings) {
  Memory memory(51);
  Reference op;
  for (const int n : {5, 300, 2048}) {
    for (const bool centred : {false, true}) {
      const Norm w{.weight = memory.f32(1, n), .eps = 1e-5f, .centred = centred};
      const Tensor x = memory.f32(2, n);
      const Positions where(2);
      const Bits y = run(op, where.batch, [&](Ops& o) { return o.norm(x, w); });
      for (int t = 0; t < 2; ++t) {
        double mean = 0, squares = 0;
        for (int i = 0; i < n; ++i) mean += centred ? double(x.f32()[t * n + i]) / n : 0;
        for (int i = 0; i < n; ++i) squares += std::pow(x.f32()[t * n + i] - mean, 2);
        const double r = 1 / std::sqrt(squares / n + w.eps);
        // A slot adds n/256 terms, the tree 8 more; half of that error reaches the root. The mean is as
        // exact.
        const double terms = n / 256 + 12;
        for (int i = 0; i < n; ++i) {
          const double want = (x.f32()[t * n + i] - mean) * r * w.weight.f32()[i];
          const double off_by_mean = centred ? terms * kU * 3 * r * std::fabs(w.weight.f32()[i]) : 0;
          EXPECT_NEAR(at(y, t * n + i), want, terms * kU * std::fabs(want) + off_by_mean) << n;
        }
      }
    }
  }
}

TEST(Reference, RopeTurnsByThePositionsAngle) {
  Memory memory(52);
  Reference op;
  for (const bool interleaved : {false, true}) {
    const Rope rope{.head_dim = 8, .interleaved = interleaved, .freq = {1, 0.1, 0.001}, .magnitude = 1.5};
    const Tensor x = memory.f32(3, 16);
    const Positions where(3, 100000);
    const Bits y = run(op, where.batch, [&](Ops& o) { return o.rope(x, rope); });
    for (int t = 0; t < 3; ++t) {
      for (int h = 0; h < 16; h += 8) {
        for (int i = 0; i < 3; ++i) {
          const int a = t * 16 + h + (interleaved ? 2 * i : i), b = interleaved ? a + 1 : a + 3;
          const double angle = (100000 + t) * rope.freq[i], x0 = x.f32()[a], x1 = x.f32()[b];
          EXPECT_NEAR(at(y, a), 1.5 * (x0 * std::cos(angle) - x1 * std::sin(angle)), 4 * kU * 1.5 * 6);
          EXPECT_NEAR(at(y, b), 1.5 * (x0 * std::sin(angle) + x1 * std::cos(angle)), 4 * kU * 1.5 * 6);
        }
        for (int i = 6; i < 8; ++i) EXPECT_EQ(at(y, t * 16 + h + i), x.f32()[t * 16 + h + i]);
      }
    }
  }
}

// softmax(q·k scale) v over the positions that the mask allows, in double, from the halves that the cache
// holds.
double attend(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& how, int t, int d,
              double* spread) {
  const int first = how.window ? std::max(0, t - how.window + 1) : 0;
  const auto half = [](float x) { return double(f16_to_f32(f32_to_f16(x))); };
  double sum = 0, weights = 0;
  *spread = 0;
  for (int s = first; s <= t; ++s) {
    double dot = 0, magnitude = 0;
    for (int i = 0; i < how.key_dim; ++i) {
      const double term = q.f32()[t * q.cols() + i] * half(k.f32()[s * k.cols() + i]);
      dot += term;
      magnitude += std::fabs(term);
    }
    double score = dot * how.scale;
    if (how.softcap) score = how.softcap * std::tanh(score / how.softcap);
    *spread = std::max(*spread, magnitude * how.scale);
    sum += std::exp(score) * half(v.f32()[s * v.cols() + d]);
    weights += std::exp(score);
  }
  return sum / weights;
}

TEST(Reference, AttentionIsASoftmaxOverWhatTheMaskAllows) {
  Memory memory(53);
  Reference op;
  for (const double softcap : {0.0, 5.0}) {
    for (const int window : {0, 70}) {
      const Attention how{.key_dim = 24, .value_dim = 16, .scale = 0.2, .softcap = softcap, .window = window};
      const int n = 140;
      const Tensor q = memory.f32(n, 24), k = memory.f32(n, 24), v = memory.f32(n, 16);
      Cache cache(memory, {1, 24, 16}, 5);
      const auto pages = cache.grant(n);
      const ops::Run runs[] = {{0, n, 0, pages}};
      const KvView kv{cache.layer(), runs};
      const Positions where(n);
      const Bits y = run(op, where.batch, [&](Ops& o) { return o.attention(q, k, v, how, kv); });
      for (int t = 0; t < n; ++t) {
        for (int d = 0; d < 16; ++d) {
          double spread;
          const double want = attend(q, k, v, how, t, d, &spread);
          // Scores: 12 roundings of a dot product and its scaling. Sums of weights and of weighted values: t
          // + 1 terms each, values up to 3; the tanh of a cap is exact to 2 of its last places.
          const double bound = 3 * (2 * 16 * kU * (spread + softcap + 1) + 2 * (t + 8) * kU);
          EXPECT_NEAR(at(y, t * 16 + d), want, bound) << t;
        }
      }
    }
  }
}

TEST(Reference, RoutesBySoftmaxAndBreaksTiesByTheLowerId) {
  const float logits[] = {1, 3, 3, -2, 0.5f};
  int32_t ids[3];
  float weights[3];
  route_row(logits, 5, {.top_k = 3, .normalise = false}, ids, weights);
  EXPECT_EQ(std::vector<int32_t>(ids, ids + 3), (std::vector<int32_t>{1, 2, 0}));
  double sum = 0;
  for (const float l : logits) sum += std::exp(double(l));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(weights[i], std::exp(double(logits[ids[i]])) / sum, 12 * kU);
  route_row(logits, 5, {.top_k = 3}, ids, weights);
  EXPECT_NEAR(weights[0] + weights[1] + weights[2], 1, 4 * kU);
  route_row(logits, 5, {.top_k = 2, .sigmoid = true, .normalise = false}, ids, weights);
  EXPECT_NEAR(weights[0], 1 / (1 + std::exp(-3.0)), 4 * kU);
}

// Float weights, so that nothing is quantised on the way.
TEST(Reference, ExpertsAddUpTheirWeightedOutputs) {
  Memory memory(54);
  Reference op;
  const quant::FormatInfo& format = *quant::find_format(quant::F32::gguf_id);
  const int dim = 16, ffn = 32;
  const auto small = [&](const Shape& shape) {
    const Tensor w = memory.weight(format, shape);
    for (int64_t i = 0; i < shape.size(); ++i)
      static_cast<float*>(w.data)[i] = memory.random().between(-1, 1);
    return w;
  };
  const Experts w{.gate = small({3, ffn, dim}), .up = small({3, ffn, dim}), .down = small({3, dim, ffn})};
  const Tensor x = memory.f32(1, dim, -1, 1);
  const Tensor ids = memory.i32({2, 0}), weights = memory.f32(1, 2, 0, 1);
  const Positions where(1);
  const Bits y = run(op, where.batch, [&](Ops& o) { return o.experts(x, w, {ids, weights}); });
  const auto dot = [](const Tensor& m, int e, int row, const auto* v) {
    double sum = 0;
    for (int i = 0; i < m.cols(); ++i) sum += double(m.f32()[(e * m.rows() + row) * m.cols() + i]) * v[i];
    return sum;
  };
  for (int j = 0; j < dim; ++j) {
    double want = 0, magnitude = 0;
    for (int c = 0; c < 2; ++c) {
      double h[ffn];
      for (int i = 0; i < ffn; ++i) {
        const double gate = dot(w.gate, ids.i32()[c], i, x.f32());
        h[i] = gate / (1 + std::exp(-gate)) * dot(w.up, ids.i32()[c], i, x.f32());
        magnitude += std::fabs(h[i]) + dim;
      }
      want += weights.f32()[c] * dot(w.down, ids.i32()[c], j, h);
    }
    // Each of 2·32 hidden values carries the roundings of two dot products of 16 and the activation.
    EXPECT_NEAR(at(y, j), want, 64 * kU * magnitude);
  }
}

}  // namespace
}  // namespace juno::ops
