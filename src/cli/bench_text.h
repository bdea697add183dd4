// SPDX-License-Identifier: Apache-2.0
// A report of api::bench() as text.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace juno::cli {

// Tables in Markdown, readable as they stand; with what api::compare() added, if it did.
std::string bench_markdown(const nlohmann::ordered_json& report);
// One line a test, names in the first.
std::string bench_csv(const nlohmann::ordered_json& report);

}  // namespace juno::cli
