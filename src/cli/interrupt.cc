// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

#include "api/session.h"

namespace juno::cli {
namespace {

// A signal handler has no other way to its session.
std::atomic<api::Session*> running{nullptr};

void on_signal(int) {
  if (api::Session* session = running) session->cancel();
}

}  // namespace

Interruptible::Interruptible(api::Session& session) {
  running = &session;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, &before_);
}

Interruptible::~Interruptible() {
  sigaction(SIGINT, &before_, nullptr);
  running = nullptr;
}

}  // namespace juno::cli
