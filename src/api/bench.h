// SPDX-License-Identifier: Apache-2.0
// How fast models run here, through the engine and with sampling as in a chat, and how near that is to what
// the machine can do. docs/performance.md says what is measured and how.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "api/session.h"

namespace juno::api {

struct BenchOptions {
  std::vector<int64_t> prompts = {512};       // tokens that are processed
  std::vector<int64_t> decodes = {128};       // tokens that are decoded
  std::vector<int64_t> depths = {0, 4096};    // tokens that are in the cache before
  std::vector<int64_t> batches = {1, 8, 32};  // sequences that decode at once
  int repetitions = 5;                        // after one that is not counted
  bool kernels = false;                       // time each kernel of a test's last pass
  Log log;
};

// {juno_bench: 1, date, versions, machine: {cpu, isa, threads, load_average, limits}, settings,
//  models: [{name, …, sha256, load, peak_memory, tests: [{test, tokens, depth, batch, tokens_per_second,
//  weight_bytes_per_second, bandwidth_share, multiply_add_share, …}], skipped: [{test, depth, batch, why}]}]}
// A decode on a GPU also has device_seconds_per_step, what the device alone takes for the last step, and
// host_seconds_per_step, what the last steps took beyond it.
// With `kernels` each test has kernels: {pass_seconds, seconds, launches, rows: [{kernel, grid, threads,
// launches, seconds_each, seconds, share, bytes, bytes_per_second}]}: what its last pass takes as it is, and
// kernel by kernel. kUsage where no backend can tell.
// A context of 0 is the model's own. Errors are those of Session::open().
Result<nlohmann::ordered_json> bench(std::span<const SessionOptions> models, const BenchOptions& how);

// The text of a report of bench(). kBadData for anything else.
Result<nlohmann::ordered_json> read_report(const std::string& text, const std::string& name);

// Holds `report` against an earlier one: adds to each test that both have `against: {ratio, apart,
// tokens_per_second, same_tokens}` (ratio above 1: faster now; apart: the spreads do not overlap), and to the
// report `against: {name, date, differences, unmatched}`.
Result<void> compare(nlohmann::ordered_json& report, const nlohmann::ordered_json& earlier,
                     const std::string& name);

}  // namespace juno::api
