// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>

namespace juno {
namespace {

TEST(ThreadPool, DoesEachItemOnceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int items : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> done(1000);
      std::atomic<bool> known = true;
      pool.parallel_for(items, [&](int item, int thread) {
        ++done[item];
        if (thread < 0 || thread >= threads) known = false;
      });
      for (int i = 0; i < 1000; ++i) ASSERT_EQ(done[i], i < items ? 1 : 0);
      EXPECT_TRUE(known);
    }
  }
}

TEST(ThreadPool, RunsManyShortLoopsOneAfterTheOther) {
  ThreadPool pool(3);
  int64_t sum = 0;  // written by whoever has item 0, read by the caller: the loop's end must order them
  for (int loop = 0; loop < 20000; ++loop) {
    pool.parallel_for(3, [&](int item, int) {
      if (item == 0) sum += loop;
    });
    ASSERT_EQ(sum, int64_t{loop} * (loop + 1) / 2);
  }
}

TEST(ThreadPool, WakesThreadsThatWentToSleep) {
  ThreadPool pool(2);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> done = 0;
    pool.parallel_for(100, [&](int, int) { ++done; });
    EXPECT_EQ(done, 100);
  }
}

TEST(ThreadPool, WorksOnNoMoreThreadsThanThereAreProcessors) {
  ThreadPool pool(5, 2);
  EXPECT_EQ(pool.threads(), 5);
  std::atomic<int> done = 0;
  std::atomic<bool> known = true;
  pool.parallel_for(200, [&](int, int thread) {
    ++done;
    if (thread > 1) known = false;
  });
  EXPECT_EQ(done, 200);
  EXPECT_TRUE(known);
}

TEST(ThreadPool, TwoCallersTakeTurns) {
  ThreadPool pool(3);
  std::atomic<int> running = 0;
  std::atomic<bool> apart = true;
  const auto call = [&](int64_t& sum) {
    for (int loop = 0; loop < 3000; ++loop) {
      std::atomic<int> done = 0;
      pool.parallel_for(4, [&](int, int) {
        if (++running > 3) apart = false;
        ++done;
        --running;
      });
      sum += done;
    }
  };
  int64_t ours = 0, theirs = 0;
  std::thread other([&] { call(theirs); });
  call(ours);
  other.join();
  EXPECT_EQ(ours, 12000);
  EXPECT_EQ(theirs, 12000);
  EXPECT_TRUE(apart) << "more threads at work than the pool has";
}

bool keeps_denormals() {
  const volatile float least_normal = 0x1p-126f;
  return least_normal * 0.5f != 0.0f;
}

// Both items wait for each other, so each runs on a thread of its own.
TEST(ThreadPool, ThreadsRunInOurFloatingPointMode) {
  ThreadPool pool(2);
  std::atomic<int> arrived = 0, ours = 0;
  pool.parallel_for(2, [&](int, int thread) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    if (thread == 1) ours = keeps_denormals();
  });
  EXPECT_EQ(ours, 1);
}

// On every processor but the first somebody spins, who gets it for whole time slices.
TEST(ThreadPool, AThreadWithoutItsProcessorFinishesOnTheCallers) {
  using Clock = std::chrono::steady_clock;
  const std::vector<int> processors = allowed_processors();
  const int n = static_cast<int>(processors.size());
  if (n < 2) GTEST_SKIP() << "needs two processors";
  std::atomic<bool> over = false;
  std::vector<std::thread> neighbours;
  for (int i = 1; i < n; ++i)
    neighbours.emplace_back([&, i] {
      PinnedThread().pin(processors[static_cast<size_t>(i)]);
      while (!over) {
      }
    });
  ThreadPool pool(n, n);
  const auto until = Clock::now() + std::chrono::seconds(30);
  std::atomic<int64_t> done = 0;
  int64_t loops = 0;
  for (; pool.lent() == 0 && Clock::now() < until; ++loops)
    pool.parallel_for(4 * n, [&](int, int) {
      const auto end = Clock::now() + std::chrono::microseconds(100);
      while (Clock::now() < end) {
      }
      ++done;
    });
  over = true;
  for (std::thread& neighbour : neighbours) neighbour.join();
  EXPECT_GT(pool.lent(), 0) << "in " << loops << " loops";
  EXPECT_EQ(done, 4 * n * loops);
}

}  // namespace
}  // namespace juno
