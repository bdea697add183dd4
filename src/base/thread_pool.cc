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
constexpr int kLooks = 32;      // at the value for each look at the clock
constexpr int kMostLooks = 10;  // at threads that are not done, kSpin apart

// Tells the processor that this thread only waits. Unlike a yield it hands no time slice to a neighbour, from
// whom it would come back milliseconds later.
void relax() {
#if __has_builtin(__builtin_ia32_pause)
  __builtin_ia32_pause();
#endif
}

// Looks at the value for kSpin. -> whether it is no longer `old`.
bool spin(const std::atomic<int>& value, int old) {
  const auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (value.load(std::memory_order_acquire) != old) return true;
      relax();
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace

ThreadPool::ThreadPool(int threads, int processors)
    : seats_(std::make_unique<PinnedThread[]>(static_cast<size_t>(std::max(threads, 1)))),
      spins_(processors > 0 || threads <= static_cast<int>(std::thread::hardware_concurrency())) {
  const std::vector<int> all = allowed_processors();
  const bool pins = processors == threads && std::ssize(all) == threads;
  for (int i = 1; i < threads; ++i) {
    try {
      if (processors > 0 && i >= processors) workers_.emplace_back([this] { over_.wait(false); });
      else workers_.emplace_back([this, i, own = pins ? all[static_cast<size_t>(i)] : -1] { serve(i, own); });
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
  if (!spins_ || !spin(value, old)) value.wait(old, std::memory_order_acquire);
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
  wait_for_others();
  turn_.store(static_cast<int>(static_cast<unsigned>(ticket) + 1), std::memory_order_release);
  turn_.notify_all();
}

void ThreadPool::wait_for_others() {
  int looks = 0;
  for (int left; (left = unfinished_.load(std::memory_order_acquire)) != 0;) {
    if (spins_ && spin(unfinished_, left)) continue;
    for (int i = 1; i < threads(); ++i)
      if (seats_[i].finish_here()) lent_.fetch_add(1, std::memory_order_relaxed);
    if (!spins_ || ++looks == kMostLooks) unfinished_.wait(left, std::memory_order_acquire);
  }
}

// Claims one item and does it. Who holds an item keeps the loop from ending, so what it reads belongs to that
// loop, however long ago it last looked.
bool ThreadPool::work(int thread) {
  int left = unclaimed_.load(std::memory_order_acquire);
  while (left > 0) {
    if (!unclaimed_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire))
      continue;
    seats_[thread].begin();
    call_(context_, items_ - left, thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    seats_[thread].end();
    return true;
  }
  return false;
}

void ThreadPool::serve(int thread, int processor) {
  const FpEnv mode;
  if (processor >= 0) seats_[thread].pin(processor);
  for (;;) {
    while (work(thread)) {
    }
    if (changed(unclaimed_, 0) == kStop) return;
  }
}

}  // namespace juno
