// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while a session works: it ends what runs, not the program.
#pragma once
#include <csignal>

namespace juno::api {
class Session;
}

namespace juno::cli {

// While it lives, SIGINT cancels the session's work; then it does what it did before. One at a time.
class Interruptible {
 public:
  explicit Interruptible(api::Session& session);
  ~Interruptible();

 private:
  struct sigaction before_;
};

}  // namespace juno::cli
