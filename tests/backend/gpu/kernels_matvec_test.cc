// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "backend/gpu/kernel_test.h"

namespace juno::gpu {
namespace {

using ops::Activations;
using ops::Linear;
using ops::Ops;
using ops::test::Positions;
using test::Bits;
using test::Memory;

constexpr Activations kProfiles[] = {Activations::kInt8, Activations::kInt8x2};
constexpr int64_t kLengths[] = {32, 96, 256, 512, 576, 640, 768, 896, 1024, 2048, 3072, 3584};

// Few warps: the fewer fibres, the faster.
Chip chip(int multiprocessors) { return {.multiprocessors = multiprocessors, .product_warps = 2}; }

// One product of a weight, ready to be planned.
MatvecArgs product(const Weight& w, const quant::FormatInfo& format, const Tensor& x, Activations profile) {
  MatvecArgs a;
  a.parts[0].weight = w;
  a.parts[0].y_stride = w.rows;
  a.tokens = static_cast<int32_t>(x.rows());
  a.planes = profile == Activations::kInt8x2 && !format.is_float ? 2 : 1;
  a.k = w.cols;
  a.block = format.is_float ? 0 : format.activation_block(w.cols);
  a.from = x.f32();
  return a;
}

// Room for the rounded rows of x, and the launch that fills it.
struct RoundedRows {
  std::vector<Quad32> q;
  std::vector<float> d;
  std::vector<uint32_t> h;
  QuantiseArgs args;
  explicit RoundedRows(const MatvecArgs& a)
      : q(size_t(a.tokens) * a.planes * a.k / 16), d(q.size() * 16 / a.block), h(q.size() / 2) {
    args.x = a.from;
    args.y = {reinterpret_cast<int8_t*>(q.data()), d.data(), h.data()};
    args.tokens = a.tokens;
    args.k = a.k;
    args.block = a.block;
    args.planes = a.planes;
  }
};

Bits want_of(Activations profile, int64_t tokens, const std::function<Tensor(Ops&)>& body) {
  ops::Reference reference(profile);
  const Positions at(tokens);
  return ops::test::run(reference, at.batch, body);
}

TEST(GpuProducts, EqualTheReferenceForEveryFormatAndLength) {
  Memory memory(41);
  int turn = 0;
  for (const Activations profile : kProfiles) {
    for (const quant::FormatInfo& format : quant::formats()) {
      for (const int64_t k : kLengths) {
        if (k % format.block_elements != 0) continue;
        const int64_t tokens[] = {1, 3, 2, 4, 8}, outputs[] = {1, 5, 8, 6, 35};
        const int64_t t = std::min<int64_t>(tokens[turn % 5], profile == Activations::kInt8x2 ? 4 : 8);
        const Linear w{.weight = memory.weight(format, {.rows = outputs[turn / 2 % 5], .cols = k}),
                       .bias = turn % 2 ? memory.f32(1, outputs[turn / 2 % 5]) : Tensor{}};
        ++turn;
        const Tensor x = memory.f32(t, k), y = test::zeros(memory, t, w.weight.rows());
        const Bits want = want_of(profile, t, [&](Ops& op) { return op.linear(x, w); });
        test::Weights device;
        MatvecArgs a = product(device.upload(w.weight), format, x, profile);
        a.parts[0].y = y.f32();
        a.parts[0].bias = w.bias ? w.bias.f32() : nullptr;
        EXPECT_EQ(test::run_both_ways(plan(a, chip(2)), y), want)
            << format.name << " k " << k << " tokens " << t;
        if (format.is_float) continue;
        const RoundedRows rounded(a);
        a.x = rounded.args.y;
        a.from = nullptr;
        EXPECT_EQ(test::run_both_ways({plan(rounded.args, chip(1)), plan(a, chip(1))[0]}, y), want)
            << format.name << " k " << k;
      }
    }
  }
}

// One row of activations, whose weights come through rings of both sizes: warps with no strip, one and
// several.
TEST(GpuProducts, OfOneRowEqualTheReferenceForEveryFormatAndLength) {
  Memory memory(45);
  std::array<int, 3> planned = {};  // by the rings' size
  for (const quant::FormatInfo& format : quant::formats()) {
    for (const int64_t k : {32, 96, 256, 576, 640, 768, 896, 1536, 2048, 2304, 3072, 3584, 14336, 18944}) {
      if (format.is_float || k % format.block_elements != 0) continue;
      for (const int64_t rows : {3, 14, 43}) {
        const Linear w{.weight = memory.weight(format, {.rows = rows, .cols = k})};
        const Tensor x = memory.f32(1, k), y = test::zeros(memory, 1, rows);
        const Bits want = want_of(Activations::kInt8, 1, [&](Ops& op) { return op.linear(x, w); });
        test::Weights device;
        MatvecArgs a = product(device.upload(w.weight), format, x, Activations::kInt8);
        a.parts[0].y = y.f32();
        const std::vector<Launch> launches = plan(a, chip(1));
        ++planned[static_cast<size_t>(reinterpret_cast<const MatvecArgs*>(launches[0].args)->ring_times)];
        EXPECT_EQ(test::run_both_ways(launches, y), want) << format.name << " k " << k << " rows " << rows;
      }
    }
  }
  EXPECT_GT(planned[1], 100);
  EXPECT_GT(planned[2], 100);
}

// All integers and sub-scales at an end of their range at once.
TEST(GpuProducts, EqualTheReferenceAtTheLargestSums) {
  Memory memory(42);
  for (const quant::FormatInfo& format : quant::formats()) {
    if (format.is_float) continue;
    for (const int byte : {0x00, 0x0f, 0x3f, 0x7b, 0x80, 0xbb, 0xf3}) {
      const Tensor weight = memory.weight(format, {.rows = 4, .cols = 1024}), x = memory.f32(2, 1024);
      std::memset(weight.data, byte, ops::weight_bytes(weight));
      for (int64_t i = 0; i < x.shape.size(); ++i) x.f32()[i] = i % 7 == 3 && i > 1024 ? -2.0f : 2.0f;
      const Tensor y = test::zeros(memory, 2, 4);
      const Linear w{.weight = weight};
      const Bits want = want_of(Activations::kInt8, 2, [&](Ops& op) { return op.linear(x, w); });
      test::Weights device;
      MatvecArgs a = product(device.upload(weight), format, x, Activations::kInt8);
      a.parts[0].y = y.f32();
      EXPECT_EQ(test::run_both_ways(plan(a, chip(1)), y), want) << format.name << " bytes " << byte;
    }
  }
}

// Q, k and v of different formats after a norm; gate and up with their gate; a residual.
TEST(GpuProducts, EqualTheReferenceWithAllThatIsFusedWithThem) {
  Memory memory(43);
  const auto& q4 = *quant::find_format(quant::Q4_K::gguf_id);
  const auto& q6 = *quant::find_format(quant::Q6_K::gguf_id);
  const int64_t k = 1024, n = 20;
  for (const Activations profile : kProfiles) {
    for (const bool centred : {false, true}) {
      const ops::Norm norm{memory.f32(1, k), centred ? memory.f32(1, k) : Tensor{}, 1e-5f, centred};
      const Linear wq{.weight = memory.weight(q4, {.rows = n, .cols = k})};
      const Linear wk{.weight = memory.weight(q6, {.rows = n, .cols = k}), .bias = memory.f32(1, n)};
      const Tensor x = memory.f32(2, k), y = test::zeros(memory, 4, n), residual = memory.f32(2, n);
      test::Weights device;
      MatvecArgs a = product(device.upload(wq.weight), q4, x, profile);
      a.norm = test::norm_weights(norm);
      a.source = Source::kNorm;
      a.parts[0].y = y.f32();
      a.parts[1] = {device.upload(wk.weight), wk.bias.f32(), y.f32() + 2 * n, n};
      a.part_count = 2;
      Bits want = want_of(profile, 2, [&](Ops& op) { return op.linear(op.norm(x, norm), wq); });
      const Bits second = want_of(profile, 2, [&](Ops& op) { return op.linear(op.norm(x, norm), wk); });
      want.insert(want.end(), second.begin(), second.end());
      EXPECT_EQ(test::run_both_ways(plan(a, chip(3)), y), want) << centred;

      const Tensor half{y.data, DType::kF32, {.rows = 2, .cols = n}};
      const Linear wu{.weight = memory.weight(q4, {.rows = n, .cols = k})};
      a.parts[1] = {device.upload(wu.weight), nullptr, nullptr, n};
      a.epilogue = Epilogue::kGated;
      for (const ops::Act act : {ops::Act::kSilu, ops::Act::kGeluTanh, ops::Act::kGeluErf}) {
        a.act = static_cast<int32_t>(act);
        EXPECT_EQ(test::run_both_ways(plan(a, chip(3)), half), want_of(profile, 2, [&](Ops& op) {
                    const Tensor h = op.norm(x, norm);
                    return op.gated(act, op.linear(h, wq), op.linear(h, wu));
                  }));
      }
      a.part_count = 1;
      a.epilogue = Epilogue::kAdd;
      a.residual = residual.f32();
      a.source = Source::kGated;
      a.up = memory.f32(2, k).f32();
      const Tensor up{const_cast<float*>(a.up), DType::kF32, {.rows = 2, .cols = k}};
      EXPECT_EQ(test::run_both_ways(plan(a, chip(3)), half), want_of(profile, 2, [&](Ops& op) {
                  return op.add(residual, op.linear(op.gated(ops::Act::kSilu, x, up), wq));
                }));
    }
  }
}

TEST(GpuProducts, OfExpertsEqualTheReference) {
  Memory memory(44);
  const int64_t dim = 256, ffn = 32, tokens = 3, top_k = 2, experts = 4, pairs = tokens * top_k;
  for (const Activations profile : kProfiles) {
    for (const quant::FormatInfo& format : quant::formats()) {
      const auto& q8 = *quant::find_format(quant::Q8_0::gguf_id);
      const ops::Experts w{memory.weight(format, {experts, ffn, dim}),
                           memory.weight(format, {experts, ffn, dim}),
                           memory.weight(q8, {experts, dim, ffn})};
      const Tensor x = memory.f32(tokens, dim, -1e-3f, 1e-3f), logits = memory.f32(tokens, experts);
      const Tensor ids{test::zeros(memory, tokens, top_k).data, DType::kI32, {.rows = tokens, .cols = top_k}};
      const Tensor weights = test::zeros(memory, tokens, top_k), inner = test::zeros(memory, pairs, ffn),
                   outputs = test::zeros(memory, pairs, dim), y = test::zeros(memory, tokens, dim);
      test::Weights device;
      const RouteArgs route{
          logits.f32(), ids.i32(), weights.f32(), int32_t(tokens), int32_t(experts), int32_t(top_k), 0, 1};
      const Tensor one{x.data, DType::kF32, {.rows = 1, .cols = dim}},
          mid{inner.data, DType::kF32, {.rows = 1, .cols = ffn}};
      MatvecArgs in = product(device.upload(w.gate), format, one, profile);
      in.parts[0].y = inner.f32();
      in.parts[1] = {device.upload(w.up), nullptr, nullptr, ffn};
      in.part_count = 2;
      in.epilogue = Epilogue::kGated;
      in.ids = ids.i32();
      in.pairs = int32_t(pairs);
      in.inputs_shared = int32_t(top_k);
      MatvecArgs out = product(device.upload(w.down), q8, mid, profile);
      out.parts[0].y = outputs.f32();
      out.ids = ids.i32();
      out.pairs = int32_t(pairs);
      const CombineArgs all{outputs.f32(),   ids.i32(),      weights.f32(), y.f32(),
                            int32_t(tokens), int32_t(top_k), int32_t(dim)};
      EXPECT_EQ(
          test::run_both_ways({plan(route), plan(in, chip(2))[0], plan(out, chip(2))[0], plan(all)}, y),
          want_of(profile, tokens, [&](Ops& op) { return op.experts(x, w, op.route(logits, {.top_k = 2})); }))
          << format.name;
    }
  }
}

}  // namespace
}  // namespace juno::gpu
