// SPDX-License-Identifier: Apache-2.0
// The roofline of a report of api::bench().
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace juno::cli {

// An SVG that follows the reader's light or dark colours: multiply-adds a byte of weights against
// multiply-adds a second, both logarithmic, below what the machine reads and multiplies at most. A point for
// each test whose weights are integers; the others have no multiply-adds that were counted.
std::string bench_svg(const nlohmann::ordered_json& report);

}  // namespace juno::cli
