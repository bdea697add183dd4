// SPDX-License-Identifier: Apache-2.0
// Executes a step: one batch, one forward pass, the logits that were wanted. Which tokens share a batch never
// changes a bit.
#pragma once
#include <span>
#include <vector>

#include "engine/scheduler.h"
#include "model/model.h"
#include "ops/executor.h"

namespace juno::engine {

class Runner {
 public:
  // `limits` bounds tokens and sequences of a step. All three outlive the runner.
  Runner(const model::Model& model, ops::Executor& ops, KvPool& pool, const Limits& limits);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Makes room for steps with this many rows of logits; sequences + 0 rows are there from the start.
  Result<void> reserve(int outputs);

  // One forward pass. Rows of logits are in the order of the pieces, and by position inside one.
  Result<void> run(std::span<const Piece> pieces);

  int outputs() const { return static_cast<int>(rows_.size()); }
  // [vocab] of one row, valid until the next call.
  std::span<const float> logits(int output);

  // Runs the piece again, looking at every layer, and says where the first value that is not finite appears.
  Error explain(const Piece& piece);

 private:
  void fill(std::span<const Piece> pieces);
  int32_t* place(int32_t count);

  const model::Model& model_;
  ops::Executor& ops_;
  KvPool& pool_;
  Limits limits_;
  int max_outputs_ = 0;
  std::vector<int32_t> tokens_, positions_, rows_;  // of the batch, on the host
  std::vector<ops::Run> runs_;
  void* indices_ = nullptr;  // the same on the device: tokens, positions, rows
  ops::Batch batch_;
  Tensor result_;           // [outputs, vocab], on the device
  std::vector<float> row_;  // [vocab]
};

}  // namespace juno::engine
