// SPDX-License-Identifier: Apache-2.0
// Proof that two backends compute the same bits: the same prompts on both, compared token by token and logit
// by logit, in a report that is bound to what was run. docs/gate.md.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/session.h"

namespace juno::api {

struct GateOptions {
  std::string kind;  // capability, parity, decode or prefill
  std::vector<std::string>
      arms;                     // backends; the first one's answers, alone and whole, are what all must equal
  bool require_device = false;  // nothing runs unless every arm can
  std::vector<std::string> prompts;
  std::string prompts_name;  // of the file they are from
  int64_t max_tokens = 64;
  std::vector<int64_t> batches;  // of the kind's, those that are run; empty: all
  Log log;

  // Self-test: one bit that is wrong, as if the arm had computed it.
  struct WrongBit {
    size_t arm = 0, mode = 0, prompt = 0, row = 0;
  };
  const WrongBit* wrong = nullptr;
};

std::vector<std::string> gate_kinds();

// {juno_gate, kind, status, why, date, build, host, model, prompts, settings, arms, comparisons,
//  first_divergence, answers, checksum}. status: "passed", "failed", "could not run". A gate that fails is a
// report, not an error; errors are those of arguments and files.
Result<nlohmann::ordered_json> gate(const SessionOptions& session, const GateOptions& how);

// As a report holds them.
Result<std::string> model_sha256(const SessionOptions& session);
std::string prompts_sha256(const std::vector<std::string>& prompts);

// Passed: 0, failed: 1, could not run: 2.
int gate_exit(const nlohmann::ordered_json& report);

struct SelfTest {
  std::string name;
  bool good = false;
  std::string why;
};
// Gates that must pass and gates that must fail, on this model: one wrong bit in the last logits, one in a
// weight, one in a report.
Result<std::vector<SelfTest>> gate_self_test(const SessionOptions& session);

}  // namespace juno::api
