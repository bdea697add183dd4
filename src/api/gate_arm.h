// SPDX-License-Identifier: Apache-2.0
// One arm of a gate: a model on one backend, asked the same prompts in several ways.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/session.h"

namespace juno::api {

// A way to ask: how many prompts at once, in chunks of how many tokens, and whether the logits of each token
// are looked at. Where they are not, a backend may choose the token itself. Nothing of it may change an
// answer.
struct GateMode {
  int batch = 1;
  int chunk = 0;  // 0: a prompt whole
  bool logits = true;
};

// Greedy tokens, and a hash of the logits that each was taken from; hashes of the prompt's other positions
// come first where they were asked for.
struct GateAnswer {
  std::vector<int32_t> ids;
  std::vector<uint64_t> hashes;
};

struct GateWork {
  std::vector<std::string> prompts;
  int64_t max_tokens = 64;
  bool prompt_logits = false;  // of each position of the prompt, too
  std::vector<GateMode> modes;
  // Lets a self-test put a wrong bit into the logits of a token.
  std::function<void(size_t mode, size_t prompt, size_t row, std::span<float> logits)> tamper;
};

// What one mode gave: an answer a prompt, and figures {batch, chunk, logits, held_bytes (of the devices,
// after half of the answers and after the last), prompt_tokens, new_tokens, prefill_tokens_per_second,
// decode_tokens_per_second}.
using OnGateMode = std::function<void(size_t mode, std::vector<GateAnswer> answers, nlohmann::ordered_json)>;

// Runs all modes. -> {backend, isa, threads, device, ready_seconds, stages, prompt_tokens, cut, routing}.
// Throws Error.
nlohmann::ordered_json run_arm(const SessionOptions& options, const GateWork& work,
                               const OnGateMode& on_mode);

}  // namespace juno::api
