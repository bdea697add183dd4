// SPDX-License-Identifier: Apache-2.0
// Where a model runs: which layers on which device, what each device will hold, and a line that says so.
#pragma once
#include <algorithm>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/session.h"
#include "engine/engine.h"
#include "model/model.h"
#include "ops/executor.h"

namespace juno::api {

// Bytes that a device will hold, to the byte, before any of it is taken. Weights that stay in the mapped file
// are not in it.
struct Estimate {
  uint64_t weights = 0, kv = 0, work = 0;
  uint64_t upload = 0;  // besides the weights while they are uploaded, before kv and work are taken
  uint64_t kept() const { return weights + kv + work; }
  uint64_t total() const { return weights + std::max(kv + work, upload); }  // at most, at once
};

// Of an engine: how much it works on at once.
struct Capacity {
  int sequences = 1;
  int64_t positions = 0;    // of keys and values, of all; 0: a full context for each, if memory allows
  int outputs = 0;          // rows of logits of one step; 0: one of each sequence
  uint64_t host_bytes = 0;  // that it may take of the host; 0: not looked at
};

// That a draft model guesses at once.
inline constexpr int kDraftTokens = 4;

struct Placement {
  std::vector<std::unique_ptr<ops::Executor>> executors;
  std::vector<model::Stage> stages;  // each with an executor of the list
  std::vector<Estimate> estimates;   // of each stage
  engine::EngineOptions how;         // but for the vocabulary and the draft
};

// Of a card, what is left free: its driver takes some later, and so do kernels for what one step hands the
// next.
inline constexpr uint64_t kCardSpare = uint64_t{256} << 20;

// Opens what the options ask for and spreads the layers: backend "auto" tries the cards and says in one line
// what it took and why. Fails with kDevice where a device that was asked for cannot be used, or the memory
// that is needed exceeds what is free (both numbers). `file`, which `config` is of, is handed back as it
// was.
Placement place(gguf::Reader& file, const model::Config& config, int64_t context,
                const SessionOptions& options, const Capacity& capacity);

// Bytes of the weights in the file of layers [first, last), with the embedding before layer 0.
uint64_t weight_bytes(const gguf::Reader& file, int first, int last);

// What these stages would take.
std::vector<Estimate> estimate(gguf::Reader& file, std::span<const model::Stage> stages,
                               const engine::EngineOptions& how);

// The executor of an arm or a bench: options.backend alone.
std::unique_ptr<ops::Executor> open_executor(const SessionOptions& options);

// {name, driver, target, kernels_sha256, index}; null for the host.
nlohmann::ordered_json device_json(const ops::Device& device);

}  // namespace juno::api
