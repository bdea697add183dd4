// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while a session works: it ends what runs, not the program.
#pragma once
namespace juno::api {
class Session;
}

namespace juno::cli {

// While it lives, SIGINT cancels the session's work. One at a time.
class Interruptible {
 public:
  explicit Interruptible(api::Session& session);
  ~Interruptible();
  bool interrupted() const;
};

}  // namespace juno::cli
