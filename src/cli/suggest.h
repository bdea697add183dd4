// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known word nearest to a mistyped one.
#pragma once
#include <string>
#include <vector>

namespace juno::cli {

// "" when nothing is near (more than a third of the letters differ).
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace juno::cli
