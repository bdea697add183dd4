// SPDX-License-Identifier: Apache-2.0
#include "ops/executor.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ops/harness.h"
#include "ops/host_device.h"
#include "ops/reference.h"

namespace {
std::atomic<int> allocations = 0;
}  // namespace

// Counts what the forward pass asks of the heap.
void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace juno::ops {
namespace {

using test::Cache;
using test::Memory;
using test::Positions;
using test::run;

// Two layers that use most verbs.
struct Model {
  static constexpr int kDim = 64, kLayers = 2;
  Memory memory{7};
  const quant::FormatInfo& format = *quant::find_format(quant::Q8_0::gguf_id);
  Linear square{.weight = memory.weight(format, {.rows = kDim, .cols = kDim})};
  Linear router{.weight = memory.weight(format, {.rows = 4, .cols = kDim})};
  Experts experts{.gate = memory.weight(format, {4, 96, kDim}),
                  .up = memory.weight(format, {4, 96, kDim}),
                  .down = memory.weight(format, {4, kDim, 96})};
  Norm norm{.weight = memory.f32(1, kDim), .eps = 1e-5f};
  Rope rope{.head_dim = 32, .freq = std::vector<double>(16, 0.5)};
  Tensor table = memory.weight(format, {.rows = 300, .cols = kDim});
  Cache cache{memory, {2, 32, 32}, 11};
  std::vector<int32_t> pages = cache.grant(300);
  std::vector<KvLayer> layers = std::vector<KvLayer>(kLayers, cache.layer());

  Tensor forward(Ops& op, const Batch& b) {
    op.begin(b);
    Tensor x = op.embed(table, b.tokens);
    for (int i = 0; i < kLayers; ++i) {
      const Tensor h = op.norm(x, norm);
      const Tensor q = op.rope(op.linear(h, square), rope), k = op.rope(op.linear(h, square), rope);
      x = op.add(x, op.attention(q, k, op.linear(h, square), {.key_dim = 32, .value_dim = 32, .scale = 0.2},
                                 b.kv(i)));
      x = op.add(x, op.experts(x, experts, op.route(op.linear(x, router), {.top_k = 2})));
      x = op.end_layer(i, op.scale(op.softcap(x, 30), 0.5f));
    }
    return op.linear(op.norm(op.rows(x, b.outputs), norm), square);
  }
};

struct Prompt : Positions {
  std::vector<Run> runs;
  Prompt(Model& model, int tokens) : Positions(tokens), runs{{0, tokens, 0, model.pages}} {
    batch.runs = runs;
    batch.layers = model.layers;
  }
};

TEST(Executor, AllocatesNothingInAForwardPass) {
  Model model;
  const Prompt prompt(model, 20), token(model, 1);
  Reference op(Activations::kInt8x2);
  take(op.plan(prompt.batch, [&](const Batch& b) { model.forward(op, b); }));
  model.forward(op, prompt.batch);
  const int before = allocations;
  model.forward(op, prompt.batch);
  model.forward(op, token.batch);
  EXPECT_EQ(allocations, before);
}

TEST(Executor, PlansTheSameMemoryEachTimeAndLessForLess) {
  Model model;
  const Prompt prompt(model, 20), token(model, 1);
  Reference op;
  const auto forward = [&](const Batch& b) { model.forward(op, b); };
  take(op.plan(prompt.batch, forward));
  const size_t large = op.planned_bytes();
  take(op.plan(token.batch, forward));
  EXPECT_LT(op.planned_bytes(), large);
  take(op.plan(prompt.batch, forward));
  EXPECT_EQ(op.planned_bytes(), large);
}

TEST(Executor, RefusesAPassLargerThanPlanned) {
  Model model;
  const Prompt two(model, 2), twenty(model, 20);
  Reference op;
  take(op.plan(two.batch, [&](const Batch& b) { model.forward(op, b); }));
  const auto done = guard([&] { model.forward(op, twenty.batch); });
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("planned"), std::string::npos) << done.error().message;
  const auto bits = test::bits_of(model.forward(op, two.batch));
  EXPECT_EQ(bits.size(), 2u * Model::kDim);
}

TEST(Executor, CountsWhatRanAndTheWeightsItRead) {
  Model model;
  const Prompt prompt(model, 3);
  Reference op;
  take(op.plan(prompt.batch, [&](const Batch& b) { model.forward(op, b); }));
  EXPECT_EQ(op.recorder().snapshot().weight_bytes(), 0u) << "planning runs nothing";
  model.forward(op, prompt.batch);
  const Snapshot first = op.recorder().snapshot();
  const auto of = [&](Verb verb) { return first.ops[static_cast<size_t>(verb)]; };
  EXPECT_EQ(of(Verb::kLinear).name, "linear");
  EXPECT_EQ(of(Verb::kLinear).calls, 2u * 4 + 1);
  EXPECT_EQ(of(Verb::kLinear).weight_bytes,
            7 * weight_bytes(model.square.weight) + 2 * weight_bytes(model.router.weight));
  EXPECT_EQ(of(Verb::kEmbed).weight_bytes, 3 * row_bytes(model.table));
  const uint64_t expert = weight_bytes(model.experts.gate) / 4 * 3;
  EXPECT_EQ(of(Verb::kExperts).weight_bytes % expert, 0u);
  EXPECT_GE(of(Verb::kExperts).weight_bytes, 2 * 2 * expert);
  EXPECT_EQ(of(Verb::kEndLayer).calls, 2u);
  EXPECT_EQ(first.failures(), 0u);
  model.forward(op, prompt.batch);
  EXPECT_EQ(op.recorder().snapshot().since(first).weight_bytes(), first.weight_bytes());
}

TEST(Executor, NamesTheFirstLayerThatHandsOnANaN) {
  Memory memory(8);
  const Positions at(4);
  Reference op;
  const Tensor good = memory.f32(4, 8), bad = memory.f32(4, 8);
  bad.f32()[17] = __builtin_nanf("");
  const auto forward = [&](const Batch& b) {
    op.begin(b);
    Tensor x = op.end_layer(0, op.scale(good, 1));
    x = op.end_layer(1, op.add(x, bad));
    op.end_layer(2, op.scale(x, 2));
  };
  take(op.plan(at.batch, forward));
  forward(at.batch);
  EXPECT_EQ(op.bad_layer(), std::nullopt) << "nobody asked";
  op.check_layers(true);
  forward(at.batch);
  EXPECT_EQ(op.bad_layer(), 1);
}

TEST(Executor, CopiesNoRowsWhereAllAreWanted) {
  Memory memory(8);
  Positions at(4);
  Reference op;
  const Tensor given = memory.f32(4, 8), turned = memory.i32({3, 2, 1, 0});
  Tensor x, wanted, others;
  const auto forward = [&](const Batch& b) {
    op.begin(b);
    x = op.scale(given, 2);
    wanted = op.rows(x, b.outputs);
    others = op.rows(x, turned);
  };
  take(op.plan(at.batch, forward));
  forward(at.batch);
  EXPECT_NE(wanted.data, x.data) << "nobody said that they are all";
  EXPECT_EQ(std::memcmp(wanted.data, x.data, 4 * 8 * sizeof(float)), 0);
  at.batch.all_wanted = true;
  forward(at.batch);
  EXPECT_EQ(wanted.data, x.data);
  EXPECT_NE(others.data, x.data);
  EXPECT_NE(std::memcmp(others.data, x.data, 4 * 8 * sizeof(float)), 0);
}

TEST(HostDevice, GivesZeroedAlignedMemoryOrAnError) {
  HostDevice device;
  for (const size_t bytes : {size_t{1}, size_t{1000}, size_t{1} << 22}) {
    auto* memory = static_cast<unsigned char*>(take(device.allocate(bytes)));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    EXPECT_EQ(memory[0] | memory[bytes - 1], 0);
    device.release(memory);
  }
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2}) {
    const auto refused = device.allocate(bytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kDevice);
  }
}

}  // namespace
}  // namespace juno::ops
