// SPDX-License-Identifier: Apache-2.0
// One model's part of a report of bench().
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "api/bench.h"

namespace juno::api {

// {median, min, max, samples}
nlohmann::ordered_json series(std::vector<double> samples);

// Throws Error.
nlohmann::ordered_json bench_model(const SessionOptions& options, const BenchOptions& how);

}  // namespace juno::api
