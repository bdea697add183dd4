// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

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
  ~SchedulerTest() override {
    for (const auto& s : sequences_) {
      scheduler_->remove(*s);
      pool_->release(s->pages);
    }
  }

  void start(const Limits& limits) { scheduler_ = std::make_unique<Scheduler>(*pool_, *cache_, limits); }

  // No two prompts have a token in common.
  Sequence& add(int64_t prompt, int64_t limit, Request request = {}) {
    sequences_.push_back(std::make_unique<Sequence>());
    Sequence& s = *sequences_.back();
    s.id = static_cast<SequenceId>(sequences_.size());
    s.tokens.assign(static_cast<size_t>(prompt), static_cast<int32_t>(s.id));
    s.finish.prompt_tokens = prompt;
    s.limit = limit;
    s.request = std::move(request);
    scheduler_->add(s);
    return s;
  }
  void end(Sequence& s) {
    scheduler_->remove(s);
    pool_->release(s.pages);
  }

  // A step, and what the engine does after it: the tokens of each sequence in it.
  std::map<SequenceId, int64_t> step() {
    std::map<SequenceId, int64_t> counts;
    for (const Piece& p : scheduler_->next()) {
      Sequence& s = *p.sequence;
      EXPECT_EQ(p.first, s.stored);
      EXPECT_LE(p.first + p.count, static_cast<int64_t>(s.pages.size()) * 64);
      counts[s.id] = p.count;
      s.stored += p.count;
      if (s.stored < static_cast<int64_t>(s.tokens.size())) continue;
      s.tokens.push_back(static_cast<int32_t>(s.id));
      s.state = State::kDecode;
    }
    return counts;
  }
  using Counts = std::map<SequenceId, int64_t>;

  NoDevice device_;
  std::unique_ptr<KvPool> pool_ = take(KvPool::make(device_, std::vector<ops::KvShape>{{1, 8, 8}}, 8));
  std::unique_ptr<PrefixCache> cache_ = std::make_unique<PrefixCache>(*pool_);
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

TEST_F(SchedulerTest, CutsAPromptIntoChunksOfTheBudget) {
  start({.tokens = 10, .sequences = 2});
  add(23, 100);
  std::vector<int64_t> counts;
  for (int i = 0; i < 5; ++i) counts.push_back(step().at(1));
  EXPECT_EQ(counts, (std::vector<int64_t>{10, 10, 3, 1, 1}));
}

TEST_F(SchedulerTest, DecodesGoFirstThenHalfForTheFirstPromptAndTheRestForTheShortest) {
  start({.tokens = 11, .sequences = 4});
  add(4, 60);
  step();
  add(30, 60);
  add(40, 60);
  add(3, 60);
  EXPECT_EQ(step(), (Counts{{1, 1}, {2, 5}, {4, 3}, {3, 2}}));
  EXPECT_EQ(step(), (Counts{{1, 1}, {4, 1}, {2, 5}, {3, 4}}));
}

TEST_F(SchedulerTest, ALongPromptIsComputedInFullStepsWhenItIsAlone) {
  start({.tokens = 11, .sequences = 4});
  add(30, 60);
  add(2, 60);
  EXPECT_EQ(step(), (Counts{{1, 9}, {2, 2}}));
  EXPECT_EQ(step(), (Counts{{1, 10}, {2, 1}}));
}

TEST_F(SchedulerTest, PromptsHaveABoundedPartOfAStepWithDecodes) {
  start({.tokens = 40, .sequences = 8, .beside = 2});
  add(40, 60);
  EXPECT_EQ(step(), (Counts{{1, 40}})) << "alone";
  Sequence& b = add(4, 60);
  Sequence& c = add(3, 60);
  EXPECT_EQ(step(), (Counts{{1, 1}, {2, 1}, {3, 1}}));
  while (b.state != State::kDecode || c.state != State::kDecode) step();
  add(30, 60);
  EXPECT_EQ(step(), (Counts{{1, 1}, {2, 1}, {3, 1}, {4, 3}})) << "as many as decode";
}

TEST_F(SchedulerTest, CutsAPieceWhereTheRowsOfLogitsEnd) {
  start({.tokens = 20, .sequences = 2, .outputs = 4});
  add(10, 20, {.logits_at = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  EXPECT_EQ(step(), (Counts{{1, 4}}));
  sequences_[0]->next_logits = 4;
  EXPECT_EQ(step(), (Counts{{1, 4}}));
  sequences_[0]->next_logits = 8;
  add(5, 20);
  EXPECT_EQ(step(), (Counts{{1, 2}, {2, 5}})) << "two rows, and one for the newest token of the other";
}

TEST_F(SchedulerTest, PagesComeWithTheTokens) {
  start({.tokens = 100, .sequences = 4});
  Sequence& a = add(10, 8 * 64);
  step();
  EXPECT_EQ(a.pages.size(), 1u) << "not those of its limit";
  while (a.tokens.size() < 65) step();
  EXPECT_EQ(a.pages.size(), 1u);
  step();
  EXPECT_EQ(a.pages.size(), 2u);
}

TEST_F(SchedulerTest, NobodyOvertakesWhoWaitsForPages) {
  start({.tokens = 1000, .sequences = 4});
  Sequence& a = add(5 * 64, 5 * 64);
  Sequence& b = add(4 * 64, 4 * 64);
  Sequence& c = add(10, 64);
  ASSERT_EQ(step().size(), 1u) << "b does not fit beside a, and c does not overtake b";
  EXPECT_TRUE(b.pages.empty());
  EXPECT_TRUE(c.pages.empty());
  end(a);
  EXPECT_EQ(step().size(), 2u);
  EXPECT_EQ(pool_->used(), 5);
}

TEST_F(SchedulerTest, RunsAtMostTheAllowedNumberOfSequences) {
  start({.tokens = 100, .sequences = 2});
  for (int i = 0; i < 3; ++i) add(1, 2);
  EXPECT_EQ(step().size(), 2u);
  EXPECT_FALSE(scheduler_->idle());
  for (const auto& s : sequences_) end(*s);
  EXPECT_TRUE(scheduler_->idle());
  EXPECT_TRUE(scheduler_->next().empty());
}

TEST_F(SchedulerTest, TheHigherPriorityIsAdmittedFirstAndTakesTheSlotOfALower) {
  start({.tokens = 100, .sequences = 2});
  Sequence& low = add(5, 60, {.priority = Priority::kLow});
  Sequence& normal = add(5, 60);
  step();
  add(5, 60);
  EXPECT_EQ(step(), (Counts{{2, 1}, {3, 5}})) << "a normal one takes the place of the low one";
  EXPECT_EQ(low.state, State::kWaiting);
  EXPECT_TRUE(low.pages.empty());
  add(5, 60, {.priority = Priority::kHigh});
  EXPECT_EQ(step(), (Counts{{2, 1}, {4, 5}})) << "and the high one that of the later normal one";
  EXPECT_EQ(normal.state, State::kDecode);
  EXPECT_EQ(scheduler_->preempted(), 2);
  end(normal);
  EXPECT_EQ(step(), (Counts{{3, 1}, {4, 1}})) << "what the cache has kept is not computed again";
}

TEST_F(SchedulerTest, EqualPrioritiesDoNotPreemptEachOther) {
  start({.tokens = 100, .sequences = 1});
  add(5, 60, {.priority = Priority::kLow});
  step();
  add(5, 60, {.priority = Priority::kLow});
  EXPECT_EQ(step(), (Counts{{1, 1}}));
  EXPECT_EQ(scheduler_->preempted(), 0);
}

TEST_F(SchedulerTest, WithoutPagesTheLastOfTheLowestPriorityIsPreempted) {
  start({.tokens = 1000, .sequences = 4});
  Sequence& a = add(4 * 64, 8 * 64);
  Sequence& b = add(2 * 64, 8 * 64, {.priority = Priority::kLow});
  Sequence& c = add(2 * 64, 8 * 64);
  EXPECT_EQ(step().size(), 3u);
  EXPECT_EQ(step(), (Counts{{1, 1}, {3, 1}})) << "both need a page; b has two";
  EXPECT_EQ(b.state, State::kWaiting);
  EXPECT_EQ(scheduler_->preempted(), 1);
  while (c.state == State::kDecode) step();
  EXPECT_EQ(a.state, State::kDecode);
  while (a.tokens.size() < 8 * 64) EXPECT_EQ(step().count(1), 1u) << "the first goes on in every step";
  end(a);
  EXPECT_EQ(step().count(3), 1u);
}

TEST_F(SchedulerTest, TenantsAreServedAlikeHoweverMuchTheyAsk) {
  start({.tokens = 64, .sequences = 2});
  for (int i = 0; i < 40; ++i) add(8, 60, {.tenant = "many", .keep = false});
  for (int i = 0; i < 10; ++i) add(8, 60, {.tenant = "few", .keep = false});
  std::map<std::string, int64_t> served;
  for (int i = 0; i < 100; ++i) {
    for (const auto& [id, count] : step()) {
      Sequence& s = *sequences_[static_cast<size_t>(id) - 1];
      served[s.request.tenant] += count;
      if (s.tokens.size() >= 20) end(s);
    }
  }
  EXPECT_LE(std::abs(served["many"] - served["few"]), 24) << "to one sequence";
  EXPECT_GT(served["few"], 120);
}

TEST_F(SchedulerTest, WhoComesLateIsOwedNothing) {
  start({.tokens = 64, .sequences = 1});
  for (int i = 0; i < 30; ++i) add(8, 60, {.tenant = "early", .keep = false});
  const auto finish_one = [&] {
    const SequenceId id = step().begin()->first;
    end(*sequences_[static_cast<size_t>(id) - 1]);
    return sequences_[static_cast<size_t>(id) - 1]->request.tenant;
  };
  for (int i = 0; i < 10; ++i) finish_one();
  for (int i = 0; i < 10; ++i) add(8, 60, {.tenant = "late", .keep = false});
  int late = 0;
  for (int i = 0; i < 10; ++i) late += finish_one() == "late";
  EXPECT_EQ(late, 5);
}

}  // namespace
}  // namespace juno::engine
