// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/isa_test.h"

namespace juno::cpu {
namespace {

using ops::Attention;
using ops::Batch;
using ops::KvShape;
using ops::KvView;
using ops::Ops;
using ops::test::Bits;
using ops::test::Cache;
using ops::test::Memory;
using ops::test::Positions;
using ops::test::run;

struct Case {
  int heads, kv_heads, key_dim, value_dim;
  double softcap = 0;
  int window = 0;
};

const Case kCases[] = {
    {4, 2, 16, 16},
    {9, 3, 64, 64},
    {2, 2, 24, 24, 30.0},
    {4, 1, 96, 64, 0, 100},
    {2, 1, 128, 128, 50.0, 64},
    {1, 1, 256, 256, 0, 1},
    {3, 3, 40, 12, 0, 33},
};

// One sequence of n positions: its projections and their rows as tensors.
struct Sequence {
  Tensor q, k, v;
  Sequence(Memory& memory, const Case& c, int n)
      : q(memory.f32(n, c.heads * c.key_dim)),
        k(memory.f32(n, c.kv_heads * c.key_dim)),
        v(memory.f32(n, c.kv_heads * c.value_dim)) {}
};

Tensor some_rows(const Tensor& x, int64_t first, int64_t count) {
  return {x.f32() + first * x.cols(), x.dtype, {.rows = count, .cols = x.cols()}};
}

Attention attention_of(const Case& c) {
  return {c.key_dim, c.value_dim, 1 / std::sqrt(double(c.key_dim)), c.softcap, c.window};
}

// Attends to a sequence in pieces of these lengths, one after the other, over a fresh cache.
Bits in_pieces(ops::Executor& on, const Case& c, const Sequence& s, const std::vector<int>& pieces) {
  Memory memory(2);
  const int n = static_cast<int>(s.q.rows());
  Cache cache(memory, {c.kv_heads, c.key_dim, c.value_dim}, 31);
  const std::vector<int32_t> pages = cache.grant(n);
  const Attention how = attention_of(c);
  Bits all;
  int done = 0;
  for (const int piece : pieces) {
    const int rows = std::min(piece, n - done);
    const ops::Run runs[] = {{0, rows, done, pages}};
    const KvView kv{cache.layer(), runs};
    const Positions at(rows, done);
    const Bits bits = run(on, at.batch, [&](Ops& op) {
      return op.attention(some_rows(s.q, done, rows), some_rows(s.k, done, rows), some_rows(s.v, done, rows),
                          how, kv);
    });
    all.insert(all.end(), bits.begin(), bits.end());
    done += rows;
  }
  EXPECT_EQ(done, n);
  return all;
}

class AttentionBits : public test::OnEveryIsa {};

TEST_P(AttentionBits, EqualTheReferenceWholeChunkedAndTokenByToken) {
  for (const Case& c : kCases) {
    Memory memory(31);
    const Sequence s(memory, c, 150);
    ops::Reference reference;
    const auto cpu = open();
    const Bits want = in_pieces(reference, c, s, {150});
    EXPECT_EQ(in_pieces(*cpu, c, s, {150}), want) << c.key_dim;
    EXPECT_EQ(in_pieces(*cpu, c, s, {1, 31, 64, 54}), want) << c.key_dim;
    EXPECT_EQ(in_pieces(*cpu, c, s, std::vector<int>(150, 1)), want) << c.key_dim;
  }
}

// Too few rows and heads for all threads: chunks are shared out, here in several waves, and merged in order.
TEST_P(AttentionBits, EqualTheReferenceWhereTheChunksOfAHeadAreSharedOut) {
  for (const Case& c : {Case{2, 1, 64, 64}, Case{3, 1, 40, 24, 20.0}, Case{2, 2, 64, 64, 0, 150}}) {
    Memory memory(35);
    const Sequence s(memory, c, 700);
    ops::Reference reference;
    const Bits want = in_pieces(reference, c, s, {700});
    for (const int threads : {2, 3})
      EXPECT_EQ(in_pieces(*open(ops::Activations::kInt8, threads), c, s, {500, 1, 1, 17, 112, 1, 68}), want)
          << c.key_dim << " " << threads;
  }
}

TEST_P(AttentionBits, DoNotDependOnThreads) {
  const Case c{6, 2, 64, 64};
  Memory memory(32);
  const Sequence s(memory, c, 77);
  const Bits want = in_pieces(*open(), c, s, {77});
  for (const int threads : {1, 5})
    EXPECT_EQ(in_pieces(*open(ops::Activations::kInt8, threads), c, s, {77}), want) << threads;
}

TEST_P(AttentionBits, DoNotDependOnStrangersInTheBatch) {
  const Case c{4, 2, 64, 64};
  Memory memory(33);
  const int n = 100, before = 70;  // rows [before, n) share their batch with strangers
  const Sequence s(memory, c, n), strangers(memory, c, 40);
  const auto cpu = open();
  const Bits want = in_pieces(*cpu, c, s, {before, n - before});

  Cache cache(memory, {c.kv_heads, c.key_dim, c.value_dim}, 31);
  const auto pages_a = cache.grant(17), pages = cache.grant(n), pages_b = cache.grant(23);
  const Attention how = attention_of(c);
  const Positions first(before), second(40 + n - before);
  const ops::Run alone[] = {{0, before, 0, pages}};
  const KvView kv_alone{cache.layer(), alone};
  run(*cpu, first.batch, [&](Ops& op) {
    return op.attention(some_rows(s.q, 0, before), some_rows(s.k, 0, before), some_rows(s.v, 0, before), how,
                        kv_alone);
  });

  const auto joined = [&](const Tensor& ours, const Tensor& theirs) {
    const Tensor all = memory.f32(40 + n - before, ours.cols());
    const size_t row = ours.cols() * sizeof(float);
    std::memcpy(all.f32(), theirs.f32(), 17 * row);
    std::memcpy(all.f32() + 17 * ours.cols(), ours.f32() + before * ours.cols(), (n - before) * row);
    std::memcpy(all.f32() + (17 + n - before) * ours.cols(), theirs.f32() + 17 * ours.cols(), 23 * row);
    return all;
  };
  const Tensor q = joined(s.q, strangers.q), k = joined(s.k, strangers.k), v = joined(s.v, strangers.v);
  const ops::Run runs[] = {
      {0, 17, 0, pages_a}, {17, n - before, before, pages}, {17 + n - before, 23, 0, pages_b}};
  const KvView kv{cache.layer(), runs};
  const Bits together = run(*cpu, second.batch, [&](Ops& op) { return op.attention(q, k, v, how, kv); });
  const int64_t width = c.heads * c.value_dim;
  EXPECT_EQ(Bits(together.begin() + 17 * width, together.begin() + (17 + n - before) * width),
            Bits(want.begin() + before * width, want.end()));
}

// Scores thousands of powers of two apart: whole chunks are forgotten.
TEST_P(AttentionBits, EqualTheReferenceForScoresFarApart) {
  const Case c{2, 1, 64, 64};
  Memory memory(34);
  Sequence s(memory, c, 200);
  for (int64_t i = 0; i < s.k.shape.size(); ++i) s.k.f32()[i] *= static_cast<float>(1 + i / 64 % 60);
  ops::Reference reference;
  EXPECT_EQ(in_pieces(*open(), c, s, {200}), in_pieces(reference, c, s, {200}));
}

INSTANTIATE_TEST_SUITE_P(Isa, AttentionBits, test::every_isa(), test::isa_name);

}  // namespace
}  // namespace juno::cpu
