// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/gpu/kernel_test.h"
#include "backend/gpu/plan_prompt.h"
#include "ops/rope_table.h"

namespace juno::gpu {
namespace {

using ops::Activations;
using ops::Ops;
using ops::test::Positions;
using test::Bits;
using test::Memory;

// Memory for rounded activations, full of NaNs.
struct RoundedPanels {
  RoundedPanels(const QuantiseArgs& from, int unit) {
    const PanelCounts counts = panel_counts(int64_t{from.tokens} * from.planes, from.k, from.block);
    q.assign(counts.q / 8, Quad32{{~0u, ~0u, ~0u, ~0u}});
    h.assign(counts.h / 8, q[0]);
    d.assign(counts.d / 4, q[0]);
    panels = {reinterpret_cast<uint16_t*>(q.data()), reinterpret_cast<uint16_t*>(h.data()),
              reinterpret_cast<float*>(d.data()), counts.rows};
    round.from = from;
    round.q[unit / 64] = panels.q;
    round.y = panels;
  }
  std::vector<Quad32> q, h, d;
  Panels panels;
  RoundArgs round;
};

// What blocks that share a tile need.
struct Splits {
  explicit Splits(ManyArgs& a, int multiprocessors) : chip{.multiprocessors = multiprocessors}, arrived(256) {
    partial.resize(partial_count(a, chip));
    a.partial = partial.data();
    parked.resize(parked_count(a, chip));
    a.parked = parked.data();
    a.arrived = arrived.data();
  }
  bool clean() const {
    return std::ranges::all_of(arrived, [](uint32_t n) { return n == 0; });
  }
  Chip chip;
  std::vector<float> partial, parked;
  std::vector<uint32_t> arrived;
};

// x · weightᵀ + bias, then added to `residual`, by the rounding and the product of many tokens.
struct Product {
  Tensor x, weight, bias, residual;
  int planes, multiprocessors = 8;

  Bits want() const {
    ops::Reference reference(planes == 2 ? Activations::kInt8x2 : Activations::kInt8);
    const Positions at(x.rows());
    return ops::test::run(reference, at.batch, [&](Ops& op) {
      const Tensor y = op.linear(x, {.weight = weight, .bias = bias});
      return residual ? op.add(residual, y) : y;
    });
  }
  Bits on_gpu(Memory& memory) const {
    const quant::FormatInfo& format = ops::format_of(weight);
    const int64_t k = x.cols(), rows = x.rows() * planes;
    const int block = format.activation_block(k);
    const Tensor y = test::zeros(memory, x.rows(), weight.rows());
    const QuantiseArgs from{.x = x.f32(),
                            .tokens = static_cast<int32_t>(x.rows()),
                            .k = static_cast<int32_t>(k),
                            .block = block,
                            .planes = planes};
    RoundedPanels rounded(from, many_unit(format.gguf_id, k));
    test::Weights weights;
    ManyArgs a{.parts = {{weights.upload(weight), bias ? bias.f32() : nullptr, y.f32(), y.cols()}},
               .x = rounded.panels,
               .rows = static_cast<int32_t>(rows),
               .planes = planes,
               .k = static_cast<int32_t>(k),
               .block = block,
               .residual = residual ? residual.f32() : nullptr};
    Splits joined(a, multiprocessors);
    const Bits bits = test::run_both_ways({plan(rounded.round), plan(a, joined.chip)}, y);
    EXPECT_TRUE(joined.clean());
    return bits;
  }
};

void compare(Memory& memory, const Product& p) {
  EXPECT_EQ(p.on_gpu(memory), p.want())
      << ops::format_of(p.weight).name << " k " << p.x.cols() << " rows " << p.weight.rows() << " tokens "
      << p.x.rows() << " planes " << p.planes;
}

// Kernels for few and for more activations.
TEST(GpuManyTokens, EqualTheReferenceForEveryFormatAndBlock) {
  Memory memory(71);
  constexpr int64_t kLengths[] = {32, 96, 256, 512, 576, 768, 1024};
  int turn = 0;
  for (const quant::FormatInfo& format : quant::formats()) {
    if (format.is_float) continue;
    for (const int64_t k : kLengths) {
      if (k % format.block_elements != 0 || (format.block_elements == 32 && k > 600)) continue;
      const bool wide = ++turn % 2 == 0;
      const int64_t tokens = wide ? 51 : 9, n = wide ? 66 : 37;
      compare(memory, {memory.f32(tokens, k), memory.weight(format, {.rows = n, .cols = k}), memory.f32(1, n),
                       memory.f32(tokens, n), turn % 3 == 0 ? 2 : 1});
    }
  }
}

TEST(GpuManyTokens, EqualTheReferenceAtTheLargestSums) {
  Memory memory(72);
  for (const quant::FormatInfo& format : quant::formats()) {
    if (format.is_float) continue;
    for (const int byte : {0x00, 0x7b, 0x80, 0xf3}) {
      const Tensor weight = memory.weight(format, {.rows = 9, .cols = 1024});
      std::memset(weight.data, byte, ops::weight_bytes(weight));
      const Tensor x = memory.f32(10, 1024);
      for (int64_t i = 0; i < x.shape.size(); ++i) x.f32()[i] = i % 7 == 3 && i % 2048 > 1024 ? -2.0f : 2.0f;
      compare(memory, {x, weight, {}, {}, 1});
    }
  }
}

TEST(GpuManyTokens, EqualTheReferenceForEveryNumberOfTokens) {
  Memory memory(73);
  const quant::FormatInfo& format = *quant::find_format(quant::Q4_K::gguf_id);
  for (const int64_t tokens : {1, 8, 16, 31, 32, 33, 48, 49, 64, 65, 130})
    compare(memory, {memory.f32(tokens, 1024), memory.weight(format, {.rows = 5, .cols = 1024}), {}, {}, 1});
}

// Blocks that take several tiles, alone and with others.
TEST(GpuManyTokens, EqualTheReferenceTileAfterTile) {
  Memory memory(78);
  for (const uint32_t id : {quant::Q4_K::gguf_id, quant::Q6_K::gguf_id, quant::Q8_0::gguf_id}) {
    const quant::FormatInfo& format = *quant::find_format(id);
    const int64_t k = format.block_elements == 32 ? 576 : 2048;
    for (const int64_t tokens : {9, 70, 130})
      compare(memory, {memory.f32(tokens, k), memory.weight(format, {.rows = 530, .cols = k}),
                       memory.f32(1, 530), memory.f32(tokens, 530), 1, 2});
  }
}

// The broad kernel.
TEST(GpuManyTokens, EqualTheReferenceInLargeBatches) {
  Memory memory(76);
  for (const uint32_t id : {quant::Q4_K::gguf_id, quant::Q6_K::gguf_id, quant::Q8_0::gguf_id}) {
    const quant::FormatInfo& format = *quant::find_format(id);
    compare(memory, {memory.f32(515, 1024), memory.weight(format, {.rows = 6, .cols = 1024}), {}, {}, 1});
  }
}

// Of an 8B on an H200, and of the tests above.
TEST(GpuManyTokens, TakeTheShapeThatCostsLeast) {
  const auto chosen = [](const ManyArgs& a, const Chip& chip) {
    const Launch launch = plan(a, chip);
    ManyArgs with;
    std::memcpy(&with, launch.args, sizeof with);
    return std::string(kernel_names()[static_cast<size_t>(launch.kernel)]) + " " +
           std::to_string(with.whole) + " " + std::to_string(with.splits);
  };
  const auto product = [&](uint32_t format, int32_t rows, int32_t k, int32_t tokens, const Chip& chip) {
    const int block = quant::find_format(format)->activation_block(k);
    return chosen({.parts = {{{.format = format, .rows = rows, .cols = k}}},
                   .x = {.rows = panel_counts(tokens, k, block).rows},
                   .rows = tokens,
                   .k = k,
                   .block = block},
                  chip);
  };
  constexpr uint32_t kQ4 = quant::Q4_K::gguf_id, kQ6 = quant::Q6_K::gguf_id;
  EXPECT_EQ(product(kQ4, 28672, 4096, 32, {}), "juno_few_Q4_K_128 0 1");
  EXPECT_EQ(product(kQ4, 4096, 14336, 32, {}), "juno_few_Q4_K_128 0 8");
  EXPECT_EQ(product(kQ4, 4096, 4096, 64, {}), "juno_wide_Q4_K_128 0 4");
  EXPECT_EQ(product(kQ4, 28672, 4096, 256, {}), "juno_broad_Q4_K_128 396 2");
  EXPECT_EQ(product(kQ4, 28672, 4096, 2048, {}), "juno_broad_Q4_K_128 3564 4");
  EXPECT_EQ(product(kQ6, 4096, 14336, 2048, {}), "juno_broad_Q6_K_32 396 1");
  EXPECT_EQ(product(kQ4, 37, 1024, 9, {.multiprocessors = 8}), "juno_few_Q4_K_128 0 8");
  EXPECT_EQ(product(kQ4, 6, 1024, 515, {.multiprocessors = 8}), "juno_broad_Q4_K_128 0 1");
}

// Groups with no block and with several, rows that are not aligned, tiles that are not full.
TEST(GpuManyTokens, OfFloatsEqualTheReference) {
  Memory memory(77);
  int turn = 0;
  for (const uint32_t id : {quant::F32::gguf_id, quant::F16::gguf_id, quant::BF16::gguf_id}) {
    const quant::FormatInfo& format = *quant::find_format(id);
    for (const int64_t k : {1, 16, 33, 250, 256, 300, 576, 1024}) {
      const int64_t tokens = ++turn % 3 == 0 ? 70 : 9 + turn % 5 * 7, n = turn % 2 == 0 ? 37 : 130;
      const bool one = turn % 4 == 0;
      const Tensor x = memory.f32(tokens, k), residual = memory.f32(tokens, n);
      std::vector<ops::Linear> parts;
      for (int i = 0; i < (one ? 1 : 3); ++i)
        parts.push_back({.weight = memory.weight(format, {.rows = n + 3 * i, .cols = k}),
                         .bias = i == turn % 3 ? memory.f32(1, n + 3 * i) : Tensor{}});
      test::Weights weights;
      FloatArgs a{.part_count = static_cast<int32_t>(parts.size()),
                  .x = x.f32(),
                  .tokens = static_cast<int32_t>(tokens),
                  .k = static_cast<int32_t>(k),
                  .residual = one ? residual.f32() : nullptr};
      std::vector<Tensor> y;
      for (size_t i = 0; i < parts.size(); ++i) {
        const ops::Linear& part = parts[i];
        y.push_back(test::zeros(memory, tokens, part.weight.rows()));
        a.parts[i] = {weights.upload(part.weight), part.bias ? part.bias.f32() : nullptr, y[i].f32(),
                      y[i].cols()};
      }
      for (size_t i = 0; i < parts.size(); ++i) {
        const Positions at(tokens);
        ops::Reference reference;
        const Bits want = ops::test::run(reference, at.batch, [&](Ops& op) {
          const Tensor product = op.linear(x, parts[i]);
          return one ? op.add(residual, product) : product;
        });
        EXPECT_EQ(test::run_both_ways({plan(a)}, y[i]), want)
            << format.name << " k " << k << " tokens " << tokens << " part " << i;
      }
    }
  }
}

TEST(GpuManyTokens, RoundAnActivatedInputLikeTheReference) {
  Memory memory(74);
  const quant::FormatInfo& format = *quant::find_format(quant::Q6_K::gguf_id);
  const Tensor gate = memory.f32(11, 512), up = memory.f32(11, 512),
               weight = memory.weight(format, {.rows = 8, .cols = 512});
  const Positions at(11);
  ops::Reference reference;
  const Bits want = ops::test::run(reference, at.batch, [&](Ops& op) {
    return op.linear(op.gated(ops::Act::kGeluTanh, gate, up), {.weight = weight});
  });
  RoundedPanels rounded({.x = gate.f32(),
                         .up = up.f32(),
                         .source = Source::kGated,
                         .act = 1,
                         .tokens = 11,
                         .k = 512,
                         .block = 64},
                        many_unit(format.gguf_id, 512));
  const Tensor y = test::zeros(memory, 11, 8);
  test::Weights weights;
  ManyArgs a{.parts = {{weights.upload(weight), nullptr, y.f32(), 8}},
             .x = rounded.panels,
             .rows = 11,
             .k = 512,
             .block = 64};
  Splits joined(a, 8);
  EXPECT_EQ(test::run_both_ways({plan(rounded.round), plan(a, joined.chip)}, y), want);
}

struct Case {
  int heads, kv_heads, key_dim, value_dim;
  double softcap = 0;
  int window = 0;
};
constexpr Case kCases[] = {
    {4, 2, 16, 16},
    {9, 3, 64, 64},
    {2, 2, 24, 24, 30.0},
    {4, 1, 96, 64, 0, 100},
    {8, 2, 128, 128, 50.0, 64},
    {7, 1, 128, 128},
    {8, 1, 256, 256, 0, 130},
    {3, 3, 40, 16, 0, 33},
    {5, 1, 80, 80},
    {6, 2, 96, 96, 20.0},
    {16, 2, 32, 64},
};

// Runs of several sequences in one batch, the rows before them in the cache already.
struct Prompts {
  Memory memory{75};
  Case c;
  Tensor q, k, v;
  std::vector<ops::Run> runs;
  std::vector<std::vector<int32_t>> pages;
  std::vector<int32_t> positions, first_page, all_pages;
  ops::test::Cache cache;

  Prompts(const Case& of, const std::vector<std::pair<int, int>>& starts_and_rows)
      : c(of), cache(memory, {c.kv_heads, c.key_dim, c.value_dim}, 41) {
    for (const Tensor& kept : {cache.layer().keys, cache.layer().values})
      for (int64_t i = 0; i < kept.shape.size(); ++i)
        static_cast<uint16_t*>(kept.data)[i] = f32_to_f16(memory.random().between(-2, 2));
    for (const auto& [start, rows] : starts_and_rows) pages.push_back(cache.grant(start + rows));
    for (size_t i = 0; i < pages.size(); ++i) {
      const auto [start, rows] = starts_and_rows[i];
      runs.push_back({static_cast<int32_t>(positions.size()), rows, start, pages[i]});
      for (int r = 0; r < rows; ++r) {
        positions.push_back(start + r);
        first_page.push_back(static_cast<int32_t>(all_pages.size()));
      }
      all_pages.insert(all_pages.end(), pages[i].begin(), pages[i].end());
    }
    const auto n = static_cast<int64_t>(positions.size());
    q = memory.f32(n, c.heads * c.key_dim);
    k = memory.f32(n, c.kv_heads * c.key_dim);
    v = memory.f32(n, c.kv_heads * c.value_dim);
  }
  ops::Attention how() const {
    return {c.key_dim, c.value_dim, 1 / std::sqrt(double(c.key_dim)), c.softcap, c.window};
  }
  Bits want() {
    ops::Reference reference;
    const ops::Batch batch{.tokens = memory.i32(positions), .positions = memory.i32(positions)};
    return ops::test::run(reference, batch, [&](Ops& op) {
      return op.attention(q, k, v, how(), {cache.layer(), runs});
    });
  }
  // After want(), which has stored k and v.
  Bits on_gpu() {
    const auto n = static_cast<int32_t>(positions.size());
    const Tensor y = test::zeros(memory, n, c.heads * c.value_dim);
    const ops::ScoreScale scale = ops::score_scale(how());
    const PromptArgs a{
        .q = q.f32(),
        .y = y.f32(),
        .places = {positions.data(), first_page.data(), all_pages.data(),
                   static_cast<uint16_t*>(cache.layer().keys.data),
                   static_cast<uint16_t*>(cache.layer().values.data), c.kv_heads, c.key_dim, c.value_dim},
        .rows = n,
        .heads = c.heads,
        .window = c.window,
        .capped = scale.capped,
        .before = scale.before,
        .after = scale.after};
    EXPECT_TRUE(can_attend_prompt(a, {}));
    return test::run_both_ways({plan(a)}, y);
  }
};

TEST(GpuPrompt, AttentionEqualsTheReference) {
  for (const Case& c : kCases) {
    Prompts p(c, {{0, 40}, {61, 9}, {130, 2}});
    const Bits want = p.want();
    EXPECT_EQ(p.on_gpu(), want) << c.heads << " heads of " << c.key_dim;
  }
}

TEST(GpuPrompt, AttentionOfALongRunEqualsTheReference) {
  for (const Case& c : {Case{4, 1, 64, 64}, Case{1, 1, 128, 128, 0, 70}, Case{2, 1, 256, 256}}) {
    Prompts p(c, {{3, 150}});
    const Bits want = p.want();
    EXPECT_EQ(p.on_gpu(), want) << c.heads << " heads of " << c.key_dim;
  }
}

TEST(GpuPrompt, AttentionServesHeadsOfWholeRuns) {
  const auto served = [](int key_dim, int value_dim, const Chip& chip = {}) {
    return can_attend_prompt(
        {.places = {.kv_heads = 1, .key_dim = key_dim, .value_dim = value_dim}, .heads = 4}, chip);
  };
  EXPECT_TRUE(served(80, 64));
  EXPECT_FALSE(served(20, 64));
  EXPECT_FALSE(served(64, 12));
  EXPECT_FALSE(served(264, 64));
  EXPECT_TRUE(served(128, 128, {.shared_per_block = 227 << 10}));
  EXPECT_FALSE(served(128, 128, {.shared_per_block = 160 << 10}));
  EXPECT_TRUE(served(64, 64, {.shared_per_block = 160 << 10}));
  EXPECT_FALSE(served(64, 64, {.shared_per_block = 99 << 10}));
}

TEST(GpuPrompt, AttentionLeavesRowsThatStandAlone) {
  Prompts p(kCases[0], {{70, 1}, {3, 4}, {9, 1}});
  const Bits want = p.want(), got = p.on_gpu();
  const size_t width = want.size() / 6;
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(got[i], i < width || i >= 5 * width ? 0x7f7f7f7fu : want[i]) << i;
}

}  // namespace
}  // namespace juno::gpu
