// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while something works: it ends what runs, not the program.
#pragma once
#include <csignal>

namespace juno::cli {

// While it lives, SIGINT calls cancel() of what works, from the signal's handler; then SIGINT does what it
// did before. One at a time.
class Interruptible {
 public:
  template <class T>
  explicit Interruptible(T& worker)
      : Interruptible(&worker, [](void* what) { static_cast<T*>(what)->cancel(); }) {}
  ~Interruptible();

  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  using Cancel = void (*)(void*);
  Interruptible(void* worker, Cancel cancel);
  static void on_signal(int);

  void* worker_;
  Cancel cancel_;
  struct sigaction before_;
};

}  // namespace juno::cli
