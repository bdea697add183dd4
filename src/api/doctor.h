// SPDX-License-Identifier: Apache-2.0
// What this machine offers, and why not more, as JSON: the form of `juno doctor --json`.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace juno::api {

// {versions: {juno, numerics, compiler}, cpu: {model, cores, threads_used, why}, instruction_sets: [{name,
// usable}],
//  memory: {total, available, limit}, gpus: [{vendor, library, found, why}]}
nlohmann::ordered_json doctor();

}  // namespace juno::api
