// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/fp_env.h"

namespace juno {
namespace {

constexpr int kSpins = 200;  // about 50 µs: longer than the gap between two loops of a forward pass

// Waits until the value is no longer `old`, and returns it.
int changed(std::atomic<int>& value, int old, int spins) {
  for (int i = 0; i < spins; ++i) {
    const int now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    std::this_thread::yield();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads, int processors)
    : spins_(threads <= (processors > 0 ? processors : static_cast<int>(std::thread::hardware_concurrency()))
                 ? kSpins
                 : 0) {
  for (int i = 1; i < threads; ++i) {
    try {
      workers_.emplace_back([this, i] { serve(i); });
    } catch (const std::system_error& e) {
      stop();
      fail(Code::kFailed, "[base] thread {} of {} cannot be started: {}; ask for fewer threads", i + 1,
           threads, e.what());
    }
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  unclaimed_.store(kStop, std::memory_order_release);
  unclaimed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int items, Call call, void* context) {
  call_ = call;
  context_ = context;
  items_ = items;
  unfinished_.store(items, std::memory_order_relaxed);
  unclaimed_.store(items, std::memory_order_release);
  unclaimed_.notify_all();
  while (work(0)) {
  }
  for (int left; (left = unfinished_.load(std::memory_order_acquire)) != 0;)
    changed(unfinished_, left, spins_);
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
    if (changed(unclaimed_, 0, spins_) == kStop) return;
  }
}

}  // namespace juno
