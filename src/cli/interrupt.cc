// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

#include "api/session.h"

namespace juno::cli {
namespace {

// A signal handler has no other way to its session.
std::atomic<api::Session*> running{nullptr};
std::atomic<bool> seen{false};

void on_signal(int) {
  seen = true;
  if (api::Session* session = running) session->cancel();
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

Interruptible::Interruptible(api::Session& session) {
  seen = false;
  running = &session;
  handle(on_signal);
}

Interruptible::~Interruptible() {
  handle(SIG_DFL);
  running = nullptr;
}

bool Interruptible::interrupted() const { return seen; }

}  // namespace juno::cli
