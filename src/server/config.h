// SPDX-License-Identifier: Apache-2.0
// A TOML file of options, read into what the command line would have said.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace juno::server {

struct Setting {
  std::string name;                 // of the option, without dashes before it
  std::vector<std::string> values;  // "true" or "false" for a flag; of a table: KEY=VALUE each
  bool several = false;             // a list or a table, even of one
  uint32_t line = 0;
};

// In the order of the text, which is the file's. kConfig with file, line and column when it is no TOML or
// holds what no option can take.
Result<std::vector<Setting>> read_settings(std::string_view text, const std::string& path);

}  // namespace juno::server
