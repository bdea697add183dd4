// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/fp_env.h"

namespace juno {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than the gaps between the loops of a forward pass, shorter than a scheduler's time slice: a thread
// that has nothing to do for longer sleeps and leaves its processor to others.
constexpr std::chrono::microseconds kSpin{100};
constexpr int kLooks = 32;  // at the value for each look at the clock

// Tells the processor that this thread only waits. Unlike a yield it hands no time slice to a neighbour, from
// whom it would come back milliseconds later.
void relax() {
#if __has_builtin(__builtin_ia32_pause)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads, int processors)
    : spins_(processors > 0 || threads <= static_cast<int>(std::thread::hardware_concurrency())) {
  for (int i = 1; i < threads; ++i) {
    try {
      if (processors > 0 && i >= processors) workers_.emplace_back([this] { over_.wait(false); });
      else workers_.emplace_back([this, i] { serve(i); });
    } catch (const std::system_error& e) {
      stop();
      fail(Code::kFailed, "[base] thread {} of {} cannot be started: {}; ask for fewer threads", i + 1,
           threads, e.what());
    }
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  over_.store(true);
  over_.notify_all();
  unclaimed_.store(kStop, std::memory_order_release);
  unclaimed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// Waits until the value is no longer `old`, and returns it.
int ThreadPool::changed(std::atomic<int>& value, int old) const {
  if (spins_) {
    const auto end = Clock::now() + kSpin;
    do {
      for (int i = 0; i < kLooks; ++i) {
        const int now = value.load(std::memory_order_acquire);
        if (now != old) return now;
        relax();
      }
    } while (Clock::now() < end);
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

void ThreadPool::run(int items, Call call, void* context) {
  const int ticket = tickets_.fetch_add(1, std::memory_order_relaxed);
  for (int turn; (turn = turn_.load(std::memory_order_acquire)) != ticket;) changed(turn_, turn);
  call_ = call;
  context_ = context;
  items_ = items;
  unfinished_.store(items, std::memory_order_relaxed);
  unclaimed_.store(items, std::memory_order_release);
  unclaimed_.notify_all();
  while (work(0)) {
  }
  for (int left; (left = unfinished_.load(std::memory_order_acquire)) != 0;) changed(unfinished_, left);
  turn_.store(static_cast<int>(static_cast<unsigned>(ticket) + 1), std::memory_order_release);
  turn_.notify_all();
}

// Claims one item and does it. Who holds an item keeps the loop from ending, so what it reads belongs to that
// loop, however long ago it last looked.
bool ThreadPool::work(int thread) {
  int left = unclaimed_.load(std::memory_order_acquire);
  while (left > 0) {
    if (!unclaimed_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire))
      continue;
    call_(context_, items_ - left, thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    return true;
  }
  return false;
}

void ThreadPool::serve(int thread) {
  const FpEnv mode;
  for (;;) {
    while (work(thread)) {
    }
    if (changed(unclaimed_, 0) == kStop) return;
  }
}

}  // namespace juno
