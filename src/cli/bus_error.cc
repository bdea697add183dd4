// SPDX-License-Identifier: Apache-2.0
#include "cli/bus_error.h"

#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "cli/format.h"

namespace juno::cli {
namespace {

// A handler may only use what is ready: the sentence is made beforehand.
std::string sentence;

void on_bus_error(int) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  ::_exit(static_cast<int>(Code::kBadData));
}

}  // namespace

void explain_bus_errors(const std::string& file) {
  sentence = "juno: [gguf] " + printable(file) + " was cut or became unreadable while it was in use\n";
  std::signal(SIGBUS, on_bus_error);
}

}  // namespace juno::cli
