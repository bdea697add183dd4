// SPDX-License-Identifier: Apache-2.0
// What this machine offers, and why not more, as JSON: the form of `juno doctor --json`.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace juno::api {

// {versions: {juno, numerics, compiler}, cpu: {model, cores, threads_used, why}, instruction_sets: [{name,
// usable}],
//  memory: {total, available, limit}, gpus: [{vendor, library, found, why}]}
nlohmann::ordered_json doctor();

// The names of all instruction sets that have kernels, the fastest first.
std::vector<std::string> instruction_sets();

}  // namespace juno::api
