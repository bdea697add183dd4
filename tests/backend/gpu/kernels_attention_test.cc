// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernel_test.h"
#include "ops/rope_table.h"

namespace juno::gpu {
namespace {

using ops::Ops;
using test::Bits;
using test::Memory;

struct Case {
  int heads, kv_heads, key_dim, value_dim;
  double softcap = 0;
  int window = 0;
  bool norms = false, rope = false;
};

const Case kCases[] = {
    {4, 2, 16, 16},
    {9, 3, 64, 64, 0, 0, false, true},
    {2, 2, 24, 24, 30.0},
    {4, 1, 96, 64, 0, 100},
    {8, 2, 128, 128, 50.0, 64, true, true},
    {7, 1, 128, 128},
    {8, 1, 256, 256, 0, 130},
    {3, 3, 40, 12, 0, 33},
    {2, 1, 20, 10, 0, 0, true, false},
    {5, 1, 80, 80},
    {6, 2, 96, 96, 0, 0, false, true},
    {16, 2, 32, 64},
};

// Rows of sequences that already have positions in the cache, each decoding its next one.
struct Decoding {
  Memory memory{61};
  Case c;
  std::vector<int32_t> lengths;
  Tensor q, k, v, table;
  ops::Norm q_norm, k_norm;
  ops::Rope rope;
  std::vector<ops::Run> runs;
  std::vector<std::vector<int32_t>> pages;
  std::vector<int32_t> positions, first_page, all_pages;
  ops::test::Cache cache;

  Decoding(const Case& of, std::vector<int32_t> already)
      : c(of), lengths(std::move(already)), cache(memory, {c.kv_heads, c.key_dim, c.value_dim}, 41) {
    const auto n = static_cast<int64_t>(lengths.size());
    q = memory.f32(n, c.heads * c.key_dim);
    k = memory.f32(n, c.kv_heads * c.key_dim);
    v = memory.f32(n, c.kv_heads * c.value_dim);
    q_norm = {memory.f32(1, c.key_dim), {}, 1e-6f};
    k_norm = {memory.f32(1, c.key_dim), {}, 1e-6f};
    rope = {.head_dim = c.key_dim, .interleaved = false, .freq = {}, .magnitude = 1};
    for (int i = 0; i < c.key_dim / 2; ++i) rope.freq.push_back(1.0 / (1 + i));
    fill(cache.layer().keys);
    fill(cache.layer().values);
    for (int64_t i = 0; i < n; ++i) {
      pages.push_back(cache.grant(lengths[i] + 1));
      positions.push_back(lengths[i]);
      first_page.push_back(static_cast<int32_t>(all_pages.size()));
      all_pages.insert(all_pages.end(), pages.back().begin(), pages.back().end());
    }
    for (int64_t i = 0; i < n; ++i) runs.push_back({int32_t(i), 1, lengths[i], pages[i]});
    table = test::zeros(memory, n, 2 * static_cast<int64_t>(rope.freq.size()));
    for (int64_t i = 0; i < n; ++i) ops::rope_row(lengths[i], rope, table.f32() + i * table.cols());
  }
  void fill(const Tensor& pages_of) {
    for (int64_t i = 0; i < pages_of.shape.size(); ++i)
      static_cast<uint16_t*>(pages_of.data)[i] = f32_to_f16(memory.random().between(-2, 2));
  }
  // What lies where each row's own key and value belong.
  void spoil_own() {
    for (const Tensor& of : {cache.layer().keys, cache.layer().values}) {
      const int64_t dim = of.data == cache.layer().keys.data ? c.key_dim : c.value_dim;
      for (size_t row = 0; row < positions.size(); ++row)
        for (int h = 0; h < c.kv_heads && positions[row] >= 0; ++h) {
          const int64_t page = all_pages[first_page[row] + positions[row] / 64];
          auto* const at =
              static_cast<uint16_t*>(of.data) + ((page * c.kv_heads + h) * 64 + positions[row] % 64) * dim;
          std::fill_n(at, dim, uint16_t{0x7e00});  // not a number
        }
    }
  }
  Bits stored() const {
    Bits all;
    for (const Tensor& of : {cache.layer().keys, cache.layer().values}) {
      const auto* const from = static_cast<const uint16_t*>(of.data);
      all.insert(all.end(), from, from + of.shape.size());
    }
    return all;
  }
  ops::Attention how() const {
    return {c.key_dim, c.value_dim, 1 / std::sqrt(double(c.key_dim)), c.softcap, c.window};
  }
  Bits want() {
    ops::Reference reference;
    const ops::Batch batch{.tokens = memory.i32(positions), .positions = memory.i32(positions)};
    return ops::test::run(reference, batch, [&](Ops& op) {
      Tensor a = q, b = k;
      if (c.norms) a = op.norm(a, q_norm), b = op.norm(b, k_norm);
      if (c.rope) a = op.rope(a, rope), b = op.rope(b, rope);
      return op.attention(a, b, v, how(), {cache.layer(), runs});
    });
  }
};

// Who prepares q, k and v: a launch of its own, or attention itself.
enum class Prepared { kBefore, kInside };

Bits on_gpu(Decoding& d, AttendPlan how, Prepared prepared) {
  const Case& c = d.c;
  const auto n = static_cast<int32_t>(d.lengths.size());
  const Tensor y = test::zeros(d.memory, n, c.heads * c.value_dim),
               turned = test::zeros(d.memory, n, d.q.cols());
  const Places places{d.positions.data(),
                      d.first_page.data(),
                      d.all_pages.data(),
                      static_cast<uint16_t*>(d.cache.layer().keys.data),
                      static_cast<uint16_t*>(d.cache.layer().values.data),
                      c.kv_heads,
                      c.key_dim,
                      c.value_dim};
  PrepareArgs prepare{.q = d.q.f32(),
                      .k = d.k.f32(),
                      .v = d.v.f32(),
                      .q_stride = d.q.cols(),
                      .k_stride = d.k.cols(),
                      .v_stride = d.v.cols(),
                      .q_out = turned.f32()};
  if (c.norms) prepare.q_norm = test::norm_weights(d.q_norm), prepare.k_norm = test::norm_weights(d.k_norm);
  if (c.rope) prepare.table = d.table.f32();
  prepare.rope = {c.key_dim, c.key_dim / 2, 0};
  prepare.places = places;
  prepare.rows = n;
  prepare.heads = c.heads;
  std::vector<Launch> launches;
  if (prepared == Prepared::kBefore) {
    launches.push_back(plan(prepare));
    prepare = {.q = turned.f32(), .q_stride = turned.cols(), .places = places};
  }
  const ops::ScoreScale scale = ops::score_scale(d.how());
  AttendArgs a{
      .prepare = prepare, .y = y.f32(), .places = places, .rows = n, .heads = c.heads, .max_chunks = 20};
  a.window = c.window;
  a.capped = scale.capped;
  a.before = scale.before;
  a.after = scale.after;
  std::vector<float> parts(static_cast<size_t>(n) * c.heads * a.max_chunks * (c.value_dim + 2));
  if (how.parts > 0) a.parts = parts.data();
  launches.push_back(plan_attend(a, how));
  if (how.parts > 0) launches.push_back(plan_attend_merge(a));
  d.spoil_own();
  return test::run_both_ways(launches, y);
}

// All chunks in one block, by one team or by as many as chunks, or in parts.
// Of a head or of all that share one of the cache; in parts from two blocks on.
std::vector<AttendPlan> plans(int group) {
  return {{.teams = 1, .share = group, .team = 64, .tile = 4},
          {.teams = 1, .share = group, .team = 128, .tile = 1},
          {.teams = 5, .share = group, .team = 64, .tile = 2},
          {.teams = 5, .share = 1, .team = 64, .tile = 1},
          {.blocks = 2, .teams = 1, .share = group, .team = 64, .tile = 4, .parts = 1},
          {.blocks = 4, .teams = 1, .share = 1, .team = 64, .tile = 1, .parts = 1},
          {.blocks = 3, .teams = 2, .share = group, .team = 192, .tile = 1, .parts = 1}};
}

TEST(GpuAttention, OfDecodingRowsEqualsTheReference) {
  for (const Case& c : kCases) {
    Decoding d(c, {0, 63, 64, 5, 191, 300, 130});
    const Bits want = d.want(), stored = d.stored();
    for (const auto prepared : {Prepared::kBefore, Prepared::kInside}) {
      for (const AttendPlan& how : plans(c.heads / c.kv_heads)) {
        SCOPED_TRACE(fmt::format("{} heads of {}, prepared {}, {} blocks, {} heads, {} teams of {}, tile {}",
                                 c.heads, c.key_dim, prepared == Prepared::kInside ? "inside" : "before",
                                 how.blocks, how.share, how.teams, how.team, how.tile));
        EXPECT_EQ(on_gpu(d, how, prepared), want);
        EXPECT_EQ(d.stored(), stored);
      }
    }
  }
}

TEST(GpuAttention, IsPlannedForAnyBatchWithinWhatABlockMayTake) {
  for (const uint32_t shared : {227u << 10, 99u << 10}) {
    const Chip chip{.shared_per_block = shared};
    for (const Case& c : kCases) {
      for (const int rows : {1, 7, 40, 300}) {
        for (const int chunks : {1, 2, 4, 8, 64, 512, 1 << 14}) {
          AttendArgs a{.rows = rows, .heads = c.heads, .max_chunks = chunks};
          a.places = {.kv_heads = c.kv_heads, .key_dim = c.key_dim, .value_dim = c.value_dim};
          const AttendPlan how = attend_plan(a, chip);
          float part = 0;
          if (how.parts > 0) a.parts = &part;
          const Launch l = plan_attend(a, how);
          EXPECT_LE(l.shared, shared);
          EXPECT_LE(l.threads, 512u);
          EXPECT_LE(how.parts, size_t{400} << 18);
          EXPECT_EQ(c.heads % how.share, 0);
          EXPECT_TRUE(how.parts > 0 || (how.blocks == 1 && (how.teams == 1 || how.teams >= chunks)));
          EXPECT_LE(plan_attend_merge(a).shared, shared);
        }
      }
    }
  }
}

TEST(GpuAttention, LeavesRowsThatAreNotThereAlone) {
  Decoding d(kCases[0], {70, 3});
  d.positions[1] = -1;
  for (const auto prepared : {Prepared::kBefore, Prepared::kInside}) {
    const Bits got = on_gpu(d, {.teams = 2}, prepared);
    EXPECT_NE(got.front(), 0x7f7f7f7fu);
    EXPECT_EQ(got.back(), 0x7f7f7f7fu);
  }
}

}  // namespace
}  // namespace juno::gpu
