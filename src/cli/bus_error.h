// SPDX-License-Identifier: Apache-2.0
// A model file that is cut while its weights are mapped: the system then raises SIGBUS, and only a handler
// can say why.
#pragma once
#include <string>

namespace juno::cli {

// From now on a SIGBUS ends the program with one sentence that names `file`, and status 65.
void explain_bus_errors(const std::string& file);

}  // namespace juno::cli
