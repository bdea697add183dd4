// SPDX-License-Identifier: Apache-2.0
// What a gate's report is bound to, and whether a report still holds for this program.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/session.h"

namespace juno::api {

inline constexpr int kGateForm = 1;

// {commit, sources, changes, juno, numerics, compiler}, the first three as in api/revision.h.
nlohmann::ordered_json build_json();

// Adds "checksum": the SHA-256 of the report's canonical text (keys in order, no blanks), without itself.
void seal(nlohmann::ordered_json& report);

// What a report must agree with besides this program; "" is not looked at.
struct GateExpectation {
  std::string model_sha256, prompts_sha256;
  bool same_host = false;  // made on a machine like this one
};

// Why the report, or one of {"reports": […]}, does not hold: it was edited, is of another program, kernels,
// model or machine, was made by a program with changes that nobody can see, or did not pass. Empty: it holds.
// kBadData where the text is no report of a gate.
Result<std::vector<std::string>> verify_gate(const std::string& text, const std::string& name,
                                             const GateExpectation& expected);

}  // namespace juno::api
