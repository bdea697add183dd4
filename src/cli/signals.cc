// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <semaphore.h>

#include <cerrno>
#include <csignal>

namespace juno::cli {
namespace {

// A signal handler has no other way to whoever waits; sem_post is all that it may call.
sem_t seen;
std::atomic<int> count{0};
std::atomic<bool> twice{false};

void on_signal(int) {
  if (++count > 1) twice = true;
  sem_post(&seen);
}

void handle(void (*with)(int)) {
  struct sigaction action {};
  action.sa_handler = with;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

}  // namespace

EndSignals::EndSignals() {
  count = 0;
  twice = false;
  sem_init(&seen, 0, 0);
  handle(on_signal);
}

EndSignals::~EndSignals() { handle(SIG_DFL); }

void EndSignals::wait() {
  while (sem_wait(&seen) != 0 && errno == EINTR) {
  }
}

const std::atomic<bool>& EndSignals::second() const { return twice; }

}  // namespace juno::cli
