// SPDX-License-Identifier: Apache-2.0
// What becomes of the steps of a layer. That the joined ones compute the same is held by models_test.cc.
#include "backend/gpu/fuse.h"

#include <gtest/gtest.h>

#include "ops/weight.h"
#include "quant/q8_0.h"

namespace juno::gpu {
namespace {

constexpr int64_t kTokens = 2, kDim = 64, kFfn = 96, kHeads = 2, kHead = 32;

// Hands out memory that nobody follows, and writes a layer down as GpuOps would.
class Layer {
  uintptr_t at_ = 1 << 20;

 public:
  Tensor make(int64_t cols) {
    const Tensor t{reinterpret_cast<void*>(at_), DType::kF32, {.rows = kTokens, .cols = cols}};
    at_ += static_cast<uintptr_t>(t.shape.size()) * 4;
    return t;
  }
  ops::Linear weight(int64_t out, int64_t in) {
    return {.weight = {&at_, static_cast<DType>(quant::Q8_0::gguf_id), {.rows = out, .cols = in}}};
  }
  ops::Norm norm_weight(int64_t n) { return {.weight = {&at_, DType::kF32, {.rows = 1, .cols = n}}}; }

  Tensor norm(const Tensor& x, int64_t n) {
    const Tensor y = make(x.cols());
    steps.push_back(NormStep{y, x, norm_weight(n)});
    return y;
  }
  Tensor linear(const Tensor& x, int64_t out) {
    const Tensor y = make(out);
    LinearStep step{.x = x};
    step.parts.push_back({y, weight(out, x.cols())});
    steps.push_back(step);
    return y;
  }
  Tensor rope(const Tensor& x) {
    const Tensor y = make(x.cols());
    steps.push_back(RopeStep{y, x, table, {.head_dim = kHead, .pairs = kHead / 2}});
    return y;
  }
  Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor y = make(q.cols());
    steps.push_back(AttentionStep{
        .y = y, .q = q, .k = k, .v = v, .how = {.key_dim = kHead, .value_dim = kHead}, .q_out = q});
    return y;
  }
  Tensor element(Elementwise what, const Tensor& a, const Tensor& b) {
    const Tensor y = make(a.cols());
    steps.push_back(ElementStep{.what = what, .y = y, .a = a, .b = b});
    return y;
  }
  void end(const Tensor& x) { steps.push_back(ElementStep{.y = start, .a = x}); }

  Steps steps;
  Tensor start = make(kDim), table{this, DType::kF32, {.rows = kTokens, .cols = kHead}};
};

Tensor mlp(Layer& l, const Tensor& x) {
  const Tensor h = l.norm(x, kDim);
  const Tensor gate = l.linear(h, kFfn), up = l.linear(h, kFfn);
  return l.element(Elementwise::kAdd, x, l.linear(l.element(Elementwise::kGated, gate, up), kDim));
}

TEST(Fuse, MakesFiveStepsOfALayerOfLlama) {
  Layer l;
  const Tensor h = l.norm(l.start, kDim);
  const Tensor q = l.rope(l.linear(h, kHeads * kHead)), k = l.rope(l.linear(h, kHead)),
               v = l.linear(h, kHead);
  Tensor x = l.element(Elementwise::kAdd, l.start, l.linear(l.attention(q, k, v), kDim));
  l.end(mlp(l, x));
  const Steps steps = fuse(l.steps, {l.start});
  ASSERT_EQ(steps.size(), 5u);
  const auto& qkv = std::get<LinearStep>(steps[0]);
  EXPECT_EQ(qkv.parts.size(), 3u);
  EXPECT_EQ(qkv.source, Source::kNorm);
  EXPECT_EQ(qkv.x.data, l.start.data);
  const auto& attention = std::get<AttentionStep>(steps[1]);
  EXPECT_EQ(attention.q.data, qkv.parts[0].y.data);
  EXPECT_EQ(attention.k.data, qkv.parts[1].y.data);
  EXPECT_EQ(attention.v.data, qkv.parts[2].y.data);
  EXPECT_TRUE(attention.table);
  const auto& out = std::get<LinearStep>(steps[2]);
  EXPECT_EQ(out.epilogue, Epilogue::kAdd);
  EXPECT_EQ(out.residual.data, l.start.data);
  EXPECT_EQ(std::get<LinearStep>(steps[3]).epilogue, Epilogue::kGated);
  const auto& down = std::get<LinearStep>(steps[4]);
  EXPECT_EQ(down.epilogue, Epilogue::kAdd);
  EXPECT_EQ(down.parts[0].y.data, l.start.data) << "written where the layer's result belongs";
}

TEST(Fuse, TakesTheNormsOfHeadsIntoAttention) {
  Layer l;
  const Tensor q = l.rope(l.norm(l.linear(l.start, kHeads * kHead), kHead));
  const Tensor k = l.rope(l.norm(l.linear(l.start, kHead), kHead));
  l.attention(q, k, l.linear(l.start, kHead));
  const Steps steps = fuse(l.steps, {});
  ASSERT_EQ(steps.size(), 2u);
  const auto& attention = std::get<AttentionStep>(steps[1]);
  EXPECT_TRUE(attention.q_norm.weight);
  EXPECT_TRUE(attention.k_norm.weight);
  EXPECT_EQ(attention.q_out.data, q.data);
}

TEST(Fuse, LeavesAlone_WhatSomebodyElseReads) {
  Layer l;
  const Tensor h = l.norm(l.start, kDim);
  const Tensor y = l.linear(h, kDim);
  l.element(Elementwise::kAdd, y, h);  // the norm's result is wanted as it is
  const Steps steps = fuse(l.steps, {});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<NormStep>(steps[0]));
  EXPECT_EQ(std::get<LinearStep>(steps[1]).residual.data, h.data);
}

TEST(Fuse, KeepsAProductThatIsAResult) {
  Layer l;
  const Tensor y = l.linear(l.start, kDim);
  l.element(Elementwise::kAdd, y, l.start);
  EXPECT_EQ(fuse(l.steps, {y}).size(), 2u);
}

TEST(Fuse, DoesNotWriteOverAnInputThatIsStillRead) {
  Layer l;
  const Tensor y = l.linear(l.start, kDim);  // reads all of `start` for each element of y
  l.end(y);
  EXPECT_EQ(fuse(l.steps, {l.start}).size(), 2u);
}

TEST(Fuse, LetsAnElementwiseStepEndInPlace) {
  Layer l;
  const Tensor y = l.linear(l.start, kDim), n = l.norm(y, kDim);
  l.end(l.element(Elementwise::kAdd, l.start, n));
  const Steps steps = fuse(l.steps, {l.start});
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(std::get<ElementStep>(steps[2]).y.data, l.start.data);
}

}  // namespace
}  // namespace juno::gpu
