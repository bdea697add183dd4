// SPDX-License-Identifier: Apache-2.0
// A model of the repository behind an engine, driven through the engine's own API.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "engine/engine.h"
#include "ops/reference.h"

namespace juno::engine {

inline const std::string kSource = JUNO_SOURCE_DIR;
inline const std::string kDemo = kSource + "/models/juno-demo-23m.Q8_0.gguf";
inline std::string fixture(const std::string& name) {
  return kSource + "/tests/data/archs/" + name + ".gguf";
}
inline const std::string kTiny = fixture("llama-untied");

inline std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Machine {
  std::unique_ptr<ops::Executor> ops;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<Engine> engine;
};

inline Machine machine(const std::string& path, EngineOptions options, std::unique_ptr<ops::Executor> ops) {
  Machine m;
  m.ops = std::move(ops);
  auto model =
      model::load_model(take(gguf::Reader::open(path, Log{})), options.context, m.ops->device(), Log{});
  m.model = std::make_unique<model::Model>(take(std::move(model)));
  if (options.vocab == 0) options.vocab = static_cast<int32_t>(m.model->config.vocab);
  m.engine = take(Engine::make(*m.model, *m.ops, options));
  return m;
}

inline Machine machine(const std::string& path, const EngineOptions& options,
                       ops::Activations activations = ops::Activations::kInt8) {
  return machine(path, options, std::make_unique<ops::Reference>(activations));
}

// Token ids of no meaning, always the same.
inline std::vector<int32_t> some_ids(int count, int32_t vocab, uint32_t seed = 1) {
  std::vector<int32_t> ids;
  for (uint32_t x = seed * 2654435761u + 12345; static_cast<int>(ids.size()) < count;) {
    x = x * 1664525u + 1013904223u;
    ids.push_back(static_cast<int32_t>((x >> 8) % static_cast<uint32_t>(vocab)));
  }
  return ids;
}

// What a request gave, filled in while the engine steps.
struct Outcome {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  Fnv1a logits;
  int rows = 0;
  std::optional<Finish> finish;
};

inline Request listen(Request request, Outcome& outcome) {
  request.on_token = [&outcome](const Token& t) {
    outcome.tokens.push_back(t.id);
    if (t.logprob) outcome.logprobs.push_back(*t.logprob);
    return true;
  };
  request.on_logits = [&outcome](int64_t, std::span<const float> row) {
    outcome.logits.add(row.data(), row.size_bytes());
    ++outcome.rows;
  };
  request.on_finish = [&outcome](Finish& f) { outcome.finish = std::move(f); };
  return request;
}

inline void run(Engine& engine) {
  for (;;) {
    const auto more = engine.step();
    ASSERT_TRUE(more) << more.error().message;
    if (!*more) return;
  }
}

inline std::vector<int64_t> all_positions(const std::vector<int32_t>& ids) {
  std::vector<int64_t> positions(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) positions[i] = static_cast<int64_t>(i);
  return positions;
}

// The hash of the logits at all positions of `ids`, alone in the engine.
inline uint64_t logits_hash(Engine& engine, const std::vector<int32_t>& ids) {
  Outcome outcome;
  take(engine.submit(listen({.prompt = ids, .logits_at = all_positions(ids)}, outcome)));
  run(engine);
  EXPECT_EQ(outcome.rows, static_cast<int>(ids.size()));
  return outcome.logits.value();
}

}  // namespace juno::engine
