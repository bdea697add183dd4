// SPDX-License-Identifier: Apache-2.0
// A sub-command is one file and one line in commands.cc. Its `add` declares its options on the parser and
// returns what runs once they are parsed; errors leave it as Error, whose code is the exit status.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/log.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace juno::cli {

using Run = std::function<int()>;

struct Command {
  const char* name;
  const char* alias;  // "" for none
  const char* help;
  Run (*add)(CLI::App&);
};

// THE LIST, in the order of --help.
std::span<const Command> commands();

// Writes to stdout; a closed pipe ends the program quietly.
void print(const std::string& text);
// A line to stderr, its control characters escaped. Nobody is told when that fails.
void tell(const std::string& line);

// Warnings to stderr, one line each; `verbose` adds information.
Log stderr_log(bool verbose, bool quiet = false);

// Parses and runs; returns the exit status.
int run_program(int argc, char** argv);

}  // namespace juno::cli
