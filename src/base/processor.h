// SPDX-License-Identifier: Apache-2.0
// Which processor a thread runs on.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace juno {

// The processors of the affinity mask, ascending; empty where the system does not say.
std::vector<int> allowed_processors();

// A thread with a processor of its own, and items that others may have to wait for. A neighbour on that
// processor gets it for whole time slices, so whoever waits lends his own meanwhile.
class PinnedThread {
 public:
  // By the thread itself: from now on it runs on this processor alone, if the system allows it.
  void pin(int processor);

  // By the thread itself, around each item.
  void begin() { state_.store(kBusy, std::memory_order_relaxed); }
  void end() {
    if (state_.exchange(kIdle, std::memory_order_acq_rel) == kBorrowed) give_back();
  }

  // By a thread that has nothing else to do: if this one has an item and does not run, it finishes it on the
  // caller's processor. -> whether it did.
  bool finish_here();

 private:
  enum State : int { kIdle, kBusy, kBorrowed };
  static void give_back();
  int64_t runtime() const;

  std::atomic<int> state_ = kIdle;
  std::atomic<bool> pinned_ = false;  // then these are known
  pid_t id_ = 0;
  clockid_t clock_ = 0;
};

}  // namespace juno
