// SPDX-License-Identifier: Apache-2.0
// Options of a command from a TOML file.
#pragma once
#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace juno::cli {

// Gives the options that were neither typed nor set by a variable what the file says of them. kConfig names
// file and line of a key that is no option, or of a value that it cannot take.
void apply_config(CLI::App& app, const std::string& path);

}  // namespace juno::cli
