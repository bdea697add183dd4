// SPDX-License-Identifier: Apache-2.0
// Signals that ask a server to end.
#pragma once
#include <atomic>

namespace juno::cli {

// While it lives, SIGINT and SIGTERM are counted instead of ending the program. One at a time.
class EndSignals {
 public:
  EndSignals();
  ~EndSignals();

  void wait();  // for the first one
  // Set by the second one, when nothing that is under way matters any more.
  const std::atomic<bool>& second() const;
};

}  // namespace juno::cli
