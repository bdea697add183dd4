// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace juno::cli {
namespace {

// A signal handler has no other way to what works.
std::atomic<const Interruptible*> running{nullptr};

}  // namespace

void Interruptible::on_signal(int) {
  if (const Interruptible* now = running) now->cancel_(now->worker_);
}

Interruptible::Interruptible(void* worker, Cancel cancel) : worker_(worker), cancel_(cancel) {
  running = this;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, &before_);
}

Interruptible::~Interruptible() {
  sigaction(SIGINT, &before_, nullptr);
  running = nullptr;
}

}  // namespace juno::cli
