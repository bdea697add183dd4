// SPDX-License-Identifier: Apache-2.0
// A recorder's counters as JSON, the same in every report.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "base/recorder.h"

namespace juno::api {

// {launches, launch_failures, bytes_written, bytes_read}, of the devices.
nlohmann::ordered_json traffic_json(const Traffic& traffic);

// [{op, type, stage, reason, shape, count}]: what ran elsewhere than asked.
nlohmann::ordered_json declined_json(const Snapshot& counters);

// {declined, failures, launches, launch_failures, bytes_written, bytes_read, declined_operations,
//  operations: [{op, calls, failures, weight_bytes, moved_bytes}]}
nlohmann::ordered_json routing_json(const Snapshot& counters);

}  // namespace juno::api
