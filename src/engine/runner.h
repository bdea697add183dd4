// SPDX-License-Identifier: Apache-2.0
// Executes a step: one batch, one forward pass, the logits that were wanted. Which tokens share a batch never
// changes a bit.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/scheduler.h"
#include "model/model.h"
#include "ops/executor.h"

namespace juno::engine {

// Whose logits a row of the result holds.
struct Row {
  Piece piece;
  int64_t position = 0;
  int32_t first = 0, count = 0;  // among the greatest logits of all rows
  std::string_view whole;        // why a pick takes the whole row where it could have those
};

class Runner {
 public:
  // `limits` bounds tokens and sequences of a step, the first `vocab` logits are those of tokens. Model,
  // executors and pool outlive the runner.
  static Result<std::unique_ptr<Runner>> make(const model::Model& model, std::vector<model::Stage> stages,
                                              KvPool& pool, const Limits& limits, int32_t vocab);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Makes room for steps of this many tokens with this many rows of logits; run() then allocates nothing.
  Result<void> reserve(int tokens, int outputs);

  // One forward pass. Keys and values of the pieces are in their pages afterwards; the logits that their
  // sequences want are in rows(). hidden: not logits, but what the head makes them from, of every position of
  // the pieces.
  Result<void> run(std::span<const Piece> pieces, bool hidden = false);

  std::span<const Row> rows() const { return rows_; }
  // Of rows()[row]: [vocab], or [dim] if hidden. Valid until the next call of any member.
  std::span<const float> values(int row);

  // A row of logits, as long as row_size(); on any thread of pool(), the backend's, if it has one.
  void read(int row, std::span<float> to) const;
  size_t row_size() const { return static_cast<size_t>(model_.config.vocab); }
  ThreadPool* pool() const { return stages_.back().ops->pool(); }

  // The greatest of the row's logits of tokens, in the sampler's order, where a pick may be made from these.
  // Valid like values().
  std::span<const ops::TopLogit> greatest(int row);

  // Counts, where the backend finds the greatest logits, that a pick took the whole row.
  void took_whole(std::string_view why);

  // What each stage takes of its device besides weights and cache, to the byte, without taking it.
  static Result<std::vector<size_t>> measure(const model::Model& model, std::span<const model::Stage> stages,
                                             std::span<const ops::KvLayer> layers, const Limits& limits);

  // Runs the piece again, looking at every layer, and says where the first value that is not finite appears.
  Error explain(const Piece& piece);

 private:
  Runner(const model::Model& model, std::vector<model::Stage> stages, KvPool& pool, int32_t vocab)
      : model_(model), stages_(std::move(stages)), pool_(pool), vocab_(vocab), indices_(stages_.size()) {}
  Result<void> plan(int tokens, int outputs);
  void fill(std::span<const Piece> pieces, bool hidden);
  void ask(Row& row);
  ops::Batch batch(size_t stage);

  const model::Model& model_;
  const std::vector<model::Stage> stages_;
  KvPool& pool_;
  const int32_t vocab_;
  int max_tokens_ = 0, max_outputs_ = 0;
  std::vector<int32_t> tokens_, positions_, outputs_;  // of the batch, on the host
  std::vector<ops::Run> runs_;
  std::vector<Row> rows_;
  std::vector<int32_t> joined_;  // all three
  std::vector<void*> indices_;   // where they go on the device of each stage
  std::vector<float> x_;         // [tokens, dim] on its way between stages
  bool hidden_ = false;          // of the batch
  Tensor result_;                // [outputs, vocab or dim], on the device of the last stage
  std::vector<float> values_;    // [vocab or dim]
  std::vector<int32_t> counts_;  // of each of rows_ how many of the greatest logits are wanted
  std::vector<ops::TopLogit> greatest_;
  bool has_greatest_ = false;  // they are on the host
};

}  // namespace juno::engine
