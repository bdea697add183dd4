// SPDX-License-Identifier: Apache-2.0
#include "base/processor.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace juno {
namespace {

constexpr int kClockLooks = 16;  // at a thread's clock, which stands still while it waits for a processor

cpu_set_t only(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(processor), &one);
  return one;
}

}  // namespace

std::vector<int> allowed_processors() {
  std::vector<int> found;
  // A machine may have more processors than cpu_set_t holds; the kernel then answers EINVAL.
  for (int most = 1024; most <= 1 << 20 && found.empty(); most *= 4) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(most);
    if (sched_getaffinity(0, bytes, set) == 0)
      for (int i = 0; i < most; ++i)
        if (CPU_ISSET_S(static_cast<unsigned>(i), bytes, set)) found.push_back(i);
    CPU_FREE(set);
  }
  return found;
}

void PinnedThread::pin(int processor) {
  const cpu_set_t own = only(processor);
  if (pthread_getcpuclockid(pthread_self(), &clock_) != 0 || sched_setaffinity(0, sizeof own, &own) != 0)
    return;
  id_ = gettid();
  pinned_.store(true, std::memory_order_release);
}

void PinnedThread::give_back() { sched_yield(); }

// Nanoseconds that the thread has run.
int64_t PinnedThread::runtime() const {
  timespec now{};
  clock_gettime(clock_, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool PinnedThread::finish_here() {
  if (!pinned_.load(std::memory_order_acquire)) return false;
  if (state_.load(std::memory_order_relaxed) != kBusy) return false;
  const int64_t before = runtime();
  for (int i = 0; i < kClockLooks; ++i)
    if (runtime() != before) return false;
  // Whoever changes the mask meanwhile loses: there is no way to exchange it.
  const cpu_set_t here = only(sched_getcpu());
  cpu_set_t own;
  int busy = kBusy;
  if (sched_getaffinity(id_, sizeof own, &own) != 0 || !state_.compare_exchange_strong(busy, kBorrowed))
    return false;
  sched_setaffinity(id_, sizeof here, &here);
  while (state_.load(std::memory_order_acquire) == kBorrowed) sched_yield();
  sched_setaffinity(id_, sizeof own, &own);
  return true;
}

}  // namespace juno
