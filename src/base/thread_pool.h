// SPDX-License-Identifier: Apache-2.0
// A fixed set of threads that share out the items of a loop. The caller is one of them; a loop allocates
// nothing. Several callers take turns, so that those who share a pool never use more threads than it has.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/processor.h"

namespace juno {

class ThreadPool {
 public:
  // Throws Error when the system gives no more threads. `threads` counts the caller. When `processors` are
  // named, threads beyond them sleep until the end: they would only keep each other from running. When
  // threads and processors are as many as the affinity mask has, each but the caller gets one of its own.
  explicit ThreadPool(int threads, int processors = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // Items that a thread without its processor finished on a caller's.
  int64_t lent() const { return lent_.load(std::memory_order_relaxed); }

  // Calls body(item, thread) once for each item of [0, items), in no order, on threads 0 … threads()-1, and
  // returns when all are done. The body must not throw, nor start another loop. Of two callers at once the
  // second waits until the first one's loop has ended; thread 0 is always the caller.
  template <class Body>
  void parallel_for(int items, Body&& body) {
    if (items == 1 || workers_.empty()) {
      for (int i = 0; i < items; ++i) body(i, 0);
    } else if (items > 0) {
      run(
          items,
          [](void* context, int item, int thread) {
            (*static_cast<std::remove_reference_t<Body>*>(context))(item, thread);
          },
          const_cast<void*>(static_cast<const void*>(&body)));
    }
  }

 private:
  using Call = void (*)(void* context, int item, int thread);
  void run(int items, Call call, void* context);
  int changed(std::atomic<int>& value, int old) const;
  bool work(int thread);
  void serve(int thread, int processor);
  void wait_for_others();
  void stop();

  static constexpr int kStop = -1;
  std::vector<std::thread> workers_;
  std::unique_ptr<PinnedThread[]> seats_;  // [threads]; the caller's is never pinned
  const bool spins_;
  std::atomic<int> tickets_ = 0, turn_ = 0;  // of callers: whose ticket equals the turn may run a loop
  // Written by the caller while unclaimed_ and unfinished_ are 0; read only by who has claimed an item.
  Call call_ = nullptr;
  void* context_ = nullptr;
  int items_ = 0;
  std::atomic<bool> over_ = false;
  std::atomic<int64_t> lent_ = 0;
  alignas(64) std::atomic<int> unclaimed_ = 0;  // items nobody has taken yet, or kStop
  alignas(64) std::atomic<int> unfinished_ = 0;
};

}  // namespace juno
