// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernel_test.h"
#include "ops/rope_table.h"

namespace juno::gpu {
namespace {

using ops::Ops;
using ops::test::Positions;
using test::Bits;
using test::Memory;

Bits want_of(int64_t tokens, const std::function<Tensor(Ops&)>& body) {
  ops::Reference reference;
  const Positions at(tokens);
  return ops::test::run(reference, at.batch, body);
}

TEST(GpuRows, EmbeddedEqualTheReferenceForEveryFormat) {
  Memory memory(51);
  for (const quant::FormatInfo& format : quant::formats()) {
    const Tensor table = memory.weight(format, {.rows = 7, .cols = 512}), tokens = memory.i32({6, 0, 3});
    const Tensor y = test::zeros(memory, 3, 512);
    test::Weights device;
    const EmbedArgs a{device.upload(table), tokens.i32(), y.f32(), 3};
    EXPECT_EQ(test::run_both_ways({plan(a)}, y), want_of(3, [&](Ops& op) { return op.embed(table, tokens); }))
        << format.name;
  }
}

TEST(GpuRows, RepackedByTheKernelAreThoseRepackedOnTheHost) {
  Memory memory(52);
  for (const quant::FormatInfo& format : quant::formats()) {
    if (format.is_float) continue;
    const Tensor w = memory.weight(format, {.rows = 6, .cols = 768});
    test::Weights device;
    const Weight want = device.upload(w);
    std::vector<Quad32> bytes(want.plane_bytes / 16), rows(ops::weight_bytes(w) / 16 + 1);
    std::memcpy(rows.data(), w.data, ops::weight_bytes(w));
    RepackArgs a{reinterpret_cast<const uint8_t*>(rows.data()), want, 0, 2};
    a.to.data = reinterpret_cast<const uint8_t*>(bytes.data());
    host::run(plan(a));
    a.from += 2 * ops::row_bytes(w);
    a.first = 2;
    a.count = 4;
    host::run(plan(a));
    EXPECT_EQ(std::memcmp(bytes.data(), want.data, want.plane_bytes), 0) << format.name;
  }
}

TEST(GpuRows, NormedEqualTheReference) {
  Memory memory(53);
  for (const int64_t n : {8, 64, 100, 576, 4096, 4500}) {
    for (const bool centred : {false, true}) {
      const ops::Norm w{memory.f32(1, n), centred ? memory.f32(1, n) : Tensor{}, 1e-5f, centred};
      const Tensor x = memory.f32(2, 2 * n), y = test::zeros(memory, 2, 2 * n);
      const NormArgs a{x.f32(), y.f32(), test::norm_weights(w), int32_t(n), 4};
      EXPECT_EQ(test::run_both_ways({plan(a)}, y), want_of(2, [&](Ops& op) { return op.norm(x, w); })) << n;
    }
  }
}

TEST(GpuRows, ElementByElementEqualTheReference) {
  Memory memory(54);
  const Tensor a = memory.f32(3, 1000, -9, 9), b = memory.f32(3, 1000), y = test::zeros(memory, 3, 1000);
  const auto run = [&](Elementwise what, float factor, int act) {
    return test::run_both_ways({plan(ElementArgs{what, a.f32(), b.f32(), y.f32(), factor, act, 3000})}, y);
  };
  EXPECT_EQ(run(Elementwise::kAdd, 0, 0), want_of(3, [&](Ops& op) { return op.add(a, b); }));
  EXPECT_EQ(run(Elementwise::kScale, 0.3f, 0), want_of(3, [&](Ops& op) { return op.scale(a, 0.3f); }));
  EXPECT_EQ(run(Elementwise::kSoftcap, 5, 0), want_of(3, [&](Ops& op) { return op.softcap(a, 5); }));
  for (const ops::Act act : {ops::Act::kSilu, ops::Act::kGeluTanh, ops::Act::kGeluErf})
    EXPECT_EQ(run(Elementwise::kGated, 0, int(act)),
              want_of(3, [&](Ops& op) { return op.gated(act, a, b); }));
  const Tensor index = memory.i32({2, 0, 1});
  EXPECT_EQ(test::run_both_ways({plan(RowsArgs{a.f32(), index.i32(), y.f32(), 3, 1000})}, y),
            want_of(3, [&](Ops& op) { return op.rows(a, index); }));
}

TEST(GpuRows, RotatedEqualTheReference) {
  Memory memory(55);
  for (const bool interleaved : {false, true}) {
    for (const int pairs : {32, 20}) {
      ops::Rope rope{.head_dim = 64, .interleaved = interleaved, .magnitude = 1.1};
      for (int i = 0; i < pairs; ++i) rope.freq.push_back(1.0 / (1 + 37.5 * i));
      const Tensor x = memory.f32(3, 128), y = test::zeros(memory, 3, 128),
                   table = test::zeros(memory, 3, 2 * pairs);
      const Tensor positions = memory.i32({0, 1, 2});
      const RopeTableArgs angles{rope.freq.data(), rope.magnitude, positions.i32(), table.f32(), 3, pairs};
      const RopeArgs a{x.f32(), y.f32(), table.f32(), {64, pairs, interleaved}, 3, 2};
      EXPECT_EQ(test::run_both_ways({plan(angles), plan(a)}, y),
                want_of(3, [&](Ops& op) { return op.rope(x, rope); }));
    }
  }
}

TEST(GpuRows, AnglesOfFarPositionsEqualTheHosts) {
  Memory memory(56);
  ops::Rope rope{.head_dim = 64, .magnitude = 0.9};
  for (int i = 0; i < 32; ++i) rope.freq.push_back(1.0 / (1 + 0.73 * i * i));
  const Tensor positions = memory.i32({0, 4097, 131071, 1000003}), table = test::zeros(memory, 4, 64);
  const RopeTableArgs a{rope.freq.data(), rope.magnitude, positions.i32(), table.f32(), 4, 32};
  const Bits got = test::run_both_ways({plan(a)}, table);
  for (int t = 0; t < 4; ++t) ops::rope_row(positions.i32()[t], rope, table.f32() + t * 64);
  EXPECT_EQ(got, ops::test::bits_of(table));
}

TEST(GpuRows, RoutesEqualTheReference) {
  Memory memory(57);
  for (const ops::Router how :
       {ops::Router{4, false, true}, {4, true, true}, {2, false, false}, {60, true, false}}) {
    const Tensor logits = memory.f32(9, 60, -4, 4), weights = test::zeros(memory, 9, how.top_k);
    for (int i = 0; i < 60; i += 3) logits.f32()[60 + i] = 1.5f;  // equal scores
    const Tensor ids{test::zeros(memory, 9, how.top_k).data, DType::kI32, {.rows = 9, .cols = how.top_k}};
    const RouteArgs a{logits.f32(), ids.i32(), weights.f32(), 9, 60, how.top_k, how.sigmoid, how.normalise};
    EXPECT_EQ(test::run_both_ways({plan(a)}, weights),
              want_of(9, [&](Ops& op) { return op.route(logits, how).weights; }));
    EXPECT_EQ(ops::test::bits_of(ids), want_of(9, [&](Ops& op) { return op.route(logits, how).ids; }));
  }
}

TEST(GpuRows, PairsAreSortedByExpert) {
  const int32_t tokens = 700, top_k = 3, experts = 5, size = 8, pairs = tokens * top_k;  // more than a piece
  std::vector<int32_t> ids(pairs);
  for (int32_t p = 0; p < pairs; ++p) ids[p] = (p / top_k * 7 + p % top_k * 2) % 4;  // the last one has none
  const int32_t groups = (pairs + (size - 1) * experts) / size;
  std::vector<int32_t> of_groups(groups, 99), of_slots(groups * size, 99), slots(pairs, 99);
  const GroupArgs a{ids.data(), of_groups.data(), of_slots.data(), slots.data(), pairs,
                    top_k,      experts,          groups,          size};
  host::run(std::vector{plan(a)}, host::Weather(3));
  std::vector<int> taken(groups * size, 0);
  for (int32_t p = 0; p < pairs; ++p) {
    ASSERT_TRUE(slots[p] >= 0 && slots[p] < groups * size);
    EXPECT_EQ(taken[slots[p]]++, 0) << "pair " << p;
    EXPECT_EQ(of_groups[slots[p] / size], ids[p]);
    EXPECT_EQ(of_slots[slots[p]], p / top_k);
  }
  for (int32_t s = 0; s < groups * size; ++s) EXPECT_TRUE(taken[s] == 1 || of_slots[s] == 0) << "slot " << s;
  EXPECT_EQ(of_groups.back(), -1);
  EXPECT_EQ(std::ranges::count(of_groups, 4), 0);
}

TEST(GpuRows, WhatIsNotFiniteIsFound) {
  Memory memory(58);
  const Tensor x = memory.f32(1, 10001, -9, 9);
  x.f32()[10000] = -__builtin_inff();
  uint32_t flag = 0;
  host::run(plan(FiniteArgs{x.f32(), &flag, 10000}));
  EXPECT_EQ(flag, 0u);
  host::run(plan(FiniteArgs{x.f32(), &flag, 10001}));
  EXPECT_EQ(flag, 1u);
}

}  // namespace
}  // namespace juno::gpu
