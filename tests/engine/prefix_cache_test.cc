// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>

#include "engine/engine_fixture.h"

namespace juno::engine {
namespace {

class HostDevice final : public ops::Device {
 public:
  Result<void*> allocate(size_t bytes) override { return std::calloc(1, bytes); }
  void release(void* memory) override { std::free(memory); }
  Result<Tensor> upload(const Tensor& host) override { return host; }
  void write(const Tensor& to, const void* from) override { std::memcpy(to.data, from, bytes(to)); }
  void read(void* to, const Tensor& from) override { std::memcpy(to, from.data, bytes(from)); }

 private:
  static size_t bytes(const Tensor& t) { return static_cast<size_t>(t.rows() * t.cols()) * 2; }
};

std::vector<int32_t> numbers(int count, int first = 0) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

class PrefixCacheTest : public testing::Test {
 protected:
  Sequence sequence(std::vector<int32_t> tokens, Request request = {}) {
    Sequence s;
    s.tokens = std::move(tokens);
    s.request = std::move(request);
    return s;
  }
  // How many of the tokens are known; the sequence leaves all of them to the cache.
  int64_t pass(std::vector<int32_t> tokens, Request request = {}) {
    Sequence s = sequence(std::move(tokens), std::move(request));
    EXPECT_TRUE(cache_->open(s, 0));
    const int64_t known = s.stored;
    s.stored = static_cast<int64_t>(s.tokens.size());
    cache_->publish(s);
    pool_->release(s.pages);
    return known;
  }
  // The same, leaving nothing.
  int64_t known(std::vector<int32_t> tokens, Request request = {}) {
    Sequence s = sequence(std::move(tokens), std::move(request));
    EXPECT_TRUE(cache_->open(s, 0));
    const int64_t known = s.stored;
    pool_->release(s.pages);
    return known;
  }
  void expect_sound(const std::vector<const Sequence*>& sequences = {}) {
    std::vector<int32_t> held;
    cache_->held(held);
    for (const Sequence* s : sequences) held.insert(held.end(), s->pages.begin(), s->pages.end());
    const auto sound = pool_->check(held);
    EXPECT_TRUE(sound) << sound.error().message;
  }
  // What stands in a page.
  uint16_t& content(int32_t page) {
    return static_cast<uint16_t*>(pool_->layers()[0].keys.data)[page * 64 * 8];
  }

  HostDevice device_;
  std::unique_ptr<KvPool> pool_ = take(KvPool::make(device_, std::vector<ops::KvShape>{{1, 8, 8}}, 8));
  std::unique_ptr<PrefixCache> cache_ = std::make_unique<PrefixCache>(*pool_);
};

TEST_F(PrefixCacheTest, KnowsAllButTheLastTokenOfWhatItHasSeen) {
  for (int count : {1, 2, 63, 64, 65, 128, 200}) {
    EXPECT_EQ(pass(numbers(count, 1000 * count)), 0);
    EXPECT_EQ(pass(numbers(count, 1000 * count)), count - 1) << count;
    expect_sound();
  }
}

TEST_F(PrefixCacheTest, KnowsWhatPromptsHaveInCommonToTheToken) {
  pass(numbers(200));
  for (int common : {1, 40, 63, 64, 65, 127, 128, 150, 199})
    EXPECT_EQ(known(joined(numbers(common), numbers(100, 5000))), common);
  EXPECT_EQ(known(numbers(100, 5000)), 0);
  expect_sound();
}

TEST_F(PrefixCacheTest, SharesWholePagesAndCopiesTheLast) {
  Sequence a = sequence(numbers(100));
  ASSERT_TRUE(cache_->open(a, 0));
  content(a.pages[0]) = 11;
  content(a.pages[1]) = 22;
  a.stored = 100;
  cache_->publish(a);
  Sequence b = sequence(joined(numbers(100), {7}));
  ASSERT_TRUE(cache_->open(b, 0));
  EXPECT_EQ(b.stored, 100);
  EXPECT_EQ(b.pages[0], a.pages[0]);
  EXPECT_NE(b.pages[1], a.pages[1]) << "both write their own next position";
  EXPECT_EQ(content(b.pages[1]), 22);
  EXPECT_EQ(pool_->holders(a.pages[0]), 3) << "two sequences and the cache";
  expect_sound({&a, &b});
  pool_->release(a.pages);
  pool_->release(b.pages);
  expect_sound();
}

TEST_F(PrefixCacheTest, AConversationThatFillsThePoolGoesOnInItsLastPage) {
  EXPECT_EQ(pass(numbers(8 * 64 - 20)), 0);
  EXPECT_EQ(pool_->free(), 0);
  EXPECT_EQ(pass(numbers(8 * 64 - 10)), 8 * 64 - 20) << "no page is left for a copy";
  EXPECT_EQ(pass(numbers(8 * 64)), 8 * 64 - 10);
  expect_sound();
}

TEST_F(PrefixCacheTest, TwoThatComputedTheSameKeepItOnce) {
  Sequence a = sequence(numbers(130)), b = sequence(numbers(130));
  for (Sequence* s : {&a, &b}) ASSERT_TRUE(cache_->open(*s, 0));
  EXPECT_EQ(pool_->used(), 6);
  for (Sequence* s : {&a, &b}) {
    s->stored = 130;
    cache_->publish(*s);
  }
  EXPECT_EQ(a.pages[0], b.pages[0]);
  EXPECT_EQ(a.pages[1], b.pages[1]);
  EXPECT_NE(a.pages[2], b.pages[2]) << "who runs goes on in a page of its own";
  EXPECT_EQ(pool_->used(), 4);
  expect_sound({&a, &b});
  for (Sequence* s : {&a, &b}) pool_->release(s->pages);
}

TEST_F(PrefixCacheTest, APartGrowsIntoTheWholePage) {
  pass(numbers(10));
  pass(numbers(30));
  pass(numbers(20));
  EXPECT_EQ(pool_->used(), 1);
  pass(numbers(70));
  EXPECT_EQ(pool_->used(), 2);
  EXPECT_EQ(known(numbers(100)), 70);
  expect_sound();
}

TEST_F(PrefixCacheTest, GivesUpTheLongestUnusedFromItsEnd) {
  pass(numbers(3 * 64));
  pass(numbers(3 * 64, 1000));
  known(numbers(3 * 64));  // used again
  EXPECT_EQ(pass(numbers(4 * 64, 2000)), 0);
  EXPECT_EQ(known(numbers(65, 1000)), 64) << "two of its three pages were wanted, and now one of the other's";
  EXPECT_EQ(known(numbers(2 * 64 + 1)), 2 * 64);
  expect_sound();
}

TEST_F(PrefixCacheTest, WhatASequenceHoldsIsNotGivenUp) {
  pass(numbers(4 * 64));
  Sequence a = sequence(numbers(4 * 64 + 1));
  ASSERT_TRUE(cache_->open(a, 0));
  Sequence b = sequence(numbers(4 * 64, 1000));
  EXPECT_FALSE(cache_->open(b, 0));
  EXPECT_TRUE(b.pages.empty());
  b.tokens.resize(3 * 64);
  EXPECT_FALSE(cache_->open(b, 1)) << "one is to be spared";
  EXPECT_TRUE(cache_->open(b, 0));
  expect_sound({&a, &b});
  for (Sequence* s : {&a, &b}) pool_->release(s->pages);
}

TEST_F(PrefixCacheTest, AnotherSaltKnowsNothing) {
  pass(numbers(100), {.salt = "a"});
  EXPECT_EQ(known(numbers(100), {.salt = "b"}), 0);
  EXPECT_EQ(known(numbers(100)), 0);
  EXPECT_EQ(known(numbers(100), {.salt = "a"}), 99);
}

TEST_F(PrefixCacheTest, PositionsWhoseLogitsAreWantedAreNotTakenFromIt) {
  pass(numbers(200));
  EXPECT_EQ(known(numbers(200), {.logits_at = {150, 160}}), 150);
  EXPECT_EQ(known(numbers(200), {.logits_at = {0}}), 0);
  EXPECT_EQ(known(numbers(200), {.reuse = 70}), 70);
  EXPECT_EQ(known(numbers(200), {.reuse = 0}), 0);
}

TEST_F(PrefixCacheTest, ASessionsPagesStayUntilNothingElseCanGo) {
  pass(numbers(3 * 64), {.session = "s"});
  pass(numbers(5 * 64, 1000));
  pass(numbers(5 * 64, 2000));
  EXPECT_EQ(known(numbers(3 * 64), {.session = "s"}), 3 * 64 - 1);
  Sequence large = sequence(numbers(6 * 64, 3000));
  EXPECT_TRUE(cache_->open(large, 0));
  pool_->release(large.pages);
  EXPECT_EQ(known(numbers(3 * 64)), 2 * 64) << "its end went first";
  EXPECT_EQ(cache_->sessions(), 1u);
  cache_->end_session("s");
  EXPECT_EQ(cache_->sessions(), 0u);
  EXPECT_EQ(known(numbers(3 * 64)), 0);
  expect_sound();
}

TEST_F(PrefixCacheTest, TheEndOfASessionLeavesWhatAnotherNeeds) {
  pass(numbers(100), {.session = "a"});
  pass(joined(numbers(64), numbers(64, 1000)), {.session = "b"});
  cache_->end_session("a");
  EXPECT_EQ(known(numbers(100)), 64);
  cache_->end_session("b");
  cache_->end_session("never was");
  EXPECT_EQ(pool_->used(), 0);
  expect_sound();
}

TEST_F(PrefixCacheTest, ASessionHoldsItsLastConversationOnly) {
  pass(numbers(4 * 64), {.session = "s"});
  pass(numbers(64, 1000), {.session = "s"});
  Sequence large = sequence(numbers(7 * 64, 3000));
  EXPECT_TRUE(cache_->open(large, 0));
  pool_->release(large.pages);
  EXPECT_EQ(known(numbers(65, 1000)), 64);
}

TEST_F(PrefixCacheTest, TrimForgetsPagesFromAPosition) {
  pass(numbers(200));
  cache_->trim("", numbers(200), 70);
  EXPECT_EQ(pool_->used(), 2);
  EXPECT_EQ(known(numbers(200)), 128);
  cache_->trim("", numbers(200), 0);
  EXPECT_EQ(pool_->used(), 0);
  cache_->trim("unknown", numbers(200), 0);
}

TEST_F(PrefixCacheTest, ACloneHasItsOwnPagesUnderItsOwnSalt) {
  pass(numbers(100), {.salt = "a"});
  EXPECT_EQ(take(cache_->clone(numbers(90), "a", "b")), 90);
  EXPECT_EQ(pool_->used(), 4);
  EXPECT_EQ(known(numbers(100), {.salt = "b"}), 90);
  EXPECT_EQ(take(cache_->clone(numbers(90), "nothing", "c")), 0);
  EXPECT_EQ(take(cache_->clone(numbers(90), "a", "a")), 0);
  EXPECT_EQ(take(cache_->clone(numbers(100), "a", "d")), 100);
  EXPECT_EQ(take(cache_->clone(numbers(100), "a", "e")), 100);
  EXPECT_EQ(cache_->clone(numbers(100), "a", "f").error().code, Code::kBusy);
  expect_sound();
}

TEST_F(PrefixCacheTest, RandomStormsLoseNoPageAndServeNoWrongOne) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Sequence> running;
  // Few tokens, so that prompts meet; the content of a page is a hash of the tokens up to it.
  const auto prompt = [&] {
    std::vector<int32_t> ids(static_cast<size_t>(1 + below(250)));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = i % 50 == 49 ? below(2) : 1;
    return ids;
  };
  const auto hash = [](const Sequence& s, size_t page) {
    uint64_t h = 99 + s.request.salt.size();
    for (size_t i = 0; i < (page + 1) * 64; ++i) h = h * 31 + static_cast<uint64_t>(s.tokens[i]) + 1;
    return static_cast<uint16_t>(h);
  };
  int opened = 0, reused = 0;
  for (int i = 0; i < 20000; ++i) {
    if (below(2) == 0) {
      Sequence s = sequence(prompt(), {.salt = std::string(static_cast<size_t>(below(2)), 'x'),
                                       .session = below(4) ? "" : std::to_string(below(3))});
      if (cache_->open(s, below(2))) {
        ++opened;
        reused += s.stored > 0;
        for (size_t p = 0; p < s.tokens.size() / 64; ++p) {
          if (static_cast<size_t>(s.stored) >= (p + 1) * 64) ASSERT_EQ(content(s.pages[p]), hash(s, p));
          else content(s.pages[p]) = hash(s, p);
        }
        running.push_back(std::move(s));
      } else {
        ASSERT_TRUE(s.pages.empty());
      }
    } else if (!running.empty()) {
      const auto at = running.begin() + below(static_cast<int>(running.size()));
      at->stored = static_cast<int64_t>(at->tokens.size()) - below(2);
      if (below(3)) cache_->publish(*at);
      if (below(2)) {
        pool_->release(at->pages);
        running.erase(at);
      }
    }
    if (below(20) == 0) cache_->end_session(std::to_string(below(3)));
    if (below(50) == 0) cache_->trim("", prompt(), below(200));
    std::vector<const Sequence*> all;
    for (const Sequence& s : running) all.push_back(&s);
    if (i % 10 == 0) expect_sound(all);
  }
  EXPECT_GT(opened, 3000);
  EXPECT_GT(reused, 1000);
  for (Sequence& s : running) pool_->release(s.pages);
  EXPECT_EQ(cache_->idle_pages(), pool_->used());
  std::vector<int32_t> all;
  EXPECT_TRUE(cache_->acquire(8, all)) << "everything can be had in the end";
  pool_->release(all);
}

}  // namespace
}  // namespace juno::engine
