// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace juno::engine {
namespace {

class NoDevice final : public ops::Device {
 public:
  Result<void*> allocate(size_t bytes) override { return std::calloc(1, bytes); }
  void release(void* memory) override { std::free(memory); }
  Result<Tensor> upload(const Tensor& host) override { return host; }
  void write(const Tensor&, const void*) override {}
  void read(void*, const Tensor&) override {}
};

class SchedulerTest : public testing::Test {
 protected:
  Sequence make(int64_t prompt, int64_t limit) {
    Sequence s;
    s.tokens.assign(static_cast<size_t>(prompt), 1);
    s.limit = limit;
    return s;
  }
  // What the engine does after a step.
  static void advance(std::span<const Piece> pieces) {
    for (const Piece& p : pieces) {
      Sequence& s = *p.sequence;
      s.stored += p.count;
      if (s.stored < static_cast<int64_t>(s.tokens.size())) continue;
      s.tokens.push_back(2);
      s.state = State::kDecode;
    }
  }

  NoDevice device_;
  std::unique_ptr<KvPool> pool_ = take(KvPool::make(device_, std::vector<ops::KvShape>{{1, 8, 8}}, 8));
};

TEST_F(SchedulerTest, CutsAPromptIntoChunksOfTheBudget) {
  Scheduler scheduler(*pool_, {.tokens = 10, .sequences = 2});
  Sequence a = make(23, 100);
  scheduler.add(a);
  std::vector<int64_t> counts;
  for (int i = 0; i < 5; ++i) {
    const auto pieces = scheduler.next();
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].first, a.stored);
    counts.push_back(pieces[0].count);
    advance(pieces);
  }
  EXPECT_EQ(counts, (std::vector<int64_t>{10, 10, 3, 1, 1}));
}

TEST_F(SchedulerTest, DecodesGoFirstAndPrefillsTakeTheRest) {
  Scheduler scheduler(*pool_, {.tokens = 10, .sequences = 3});
  Sequence a = make(4, 60), b = make(30, 60), c = make(5, 60);
  scheduler.add(a);
  advance(scheduler.next());
  scheduler.add(b);
  scheduler.add(c);
  const auto pieces = scheduler.next();
  ASSERT_EQ(pieces.size(), 2u) << "the budget is spent before c";
  EXPECT_EQ(pieces[0].sequence, &a);
  EXPECT_EQ(pieces[0].count, 1);
  EXPECT_EQ(pieces[1].sequence, &b);
  EXPECT_EQ(pieces[1].count, 9);
}

TEST_F(SchedulerTest, AdmitsFirstComeFirstServedWhenAllPagesAreFree) {
  Scheduler scheduler(*pool_, {.tokens = 100, .sequences = 4});
  Sequence a = make(10, 5 * 64), b = make(10, 4 * 64), c = make(10, 64);
  for (Sequence* s : {&a, &b, &c}) scheduler.add(*s);
  ASSERT_EQ(scheduler.next().size(), 1u) << "b does not fit beside a, and c does not overtake b";
  EXPECT_EQ(a.pages.size(), 5u);
  EXPECT_TRUE(b.pages.empty());
  scheduler.remove(a);
  pool_->release(a.pages);
  EXPECT_EQ(scheduler.next().size(), 2u);
  EXPECT_EQ(pool_->used(), 5);
}

TEST_F(SchedulerTest, RunsAtMostTheAllowedNumberOfSequences) {
  Scheduler scheduler(*pool_, {.tokens = 100, .sequences = 2});
  Sequence a = make(1, 2), b = make(1, 2), c = make(1, 2);
  for (Sequence* s : {&a, &b, &c}) scheduler.add(*s);
  EXPECT_EQ(scheduler.next().size(), 2u);
  EXPECT_FALSE(scheduler.idle());
  for (Sequence* s : {&a, &b, &c}) scheduler.remove(*s);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_TRUE(scheduler.next().empty());
}

TEST_F(SchedulerTest, PagesThatCameWithTheSequenceAreKept) {
  Scheduler scheduler(*pool_, {.tokens = 100, .sequences = 2});
  Sequence a = make(100, 200);
  ASSERT_TRUE(pool_->acquire(2, a.pages));
  a.stored = 90;
  scheduler.add(a);
  const auto pieces = scheduler.next();
  EXPECT_EQ(pieces[0].first, 90);
  EXPECT_EQ(pieces[0].count, 10);
  EXPECT_EQ(a.pages.size(), 4u);
  EXPECT_EQ(a.pages[1], 1);
}

}  // namespace
}  // namespace juno::engine
