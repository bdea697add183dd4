// SPDX-License-Identifier: Apache-2.0
// Composition: what a session is made of, put together from a file and options.
#pragma once
#include <memory>

#include "api/placement.h"
#include "api/prompt.h"
#include "api/session.h"
#include "engine/engine.h"
#include "model/model.h"
#include "ops/executor.h"
#include "tokenizer/tokenizer.h"

namespace juno::api {

// In the order in which they need each other.
struct Opened {
  std::vector<std::unique_ptr<ops::Executor>> executors;
  std::vector<model::Stage> stages;
  std::vector<Estimate> estimates;  // of each stage
  std::unique_ptr<model::Model> model;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<Prompt> prompt;
  std::unique_ptr<Opened> draft;  // the model that guesses, null: none
  std::unique_ptr<engine::Engine> engine;
  Info info;
  int chunk = 0;

  Snapshot snapshot() const;  // over all stages
};

// All throw Error.
gguf::Reader open_file(const SessionOptions& options);
int64_t context_of(const model::Config& config, const SessionOptions& options);
// How the file wants its hidden states made into one vector: mean, cls or last; "": it says nothing.
std::string pooling_of(const gguf::Reader& file);
Opened open_parts(const SessionOptions& options, const Capacity& capacity = {});

}  // namespace juno::api
