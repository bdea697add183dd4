// SPDX-License-Identifier: Apache-2.0
// Index arrays are filled in place and copied to the device; everything else is views.
#include "engine/runner.h"

#include <algorithm>
#include <utility>

namespace juno::engine {
namespace {

// Whether the sequence wants the logits of this position, moving past the positions that were asked for.
bool wants(Sequence& s, int64_t position) {
  const auto& at = s.request.logits_at;
  const bool asked = s.next_logits < at.size() && at[s.next_logits] == position;
  s.next_logits += asked;
  const bool newest = position + 1 == static_cast<int64_t>(s.tokens.size());
  return asked || (newest && s.limit > position + 1);
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::make(const model::Model& model, ops::Executor& ops, KvPool& pool,
                                             const Limits& limits) {
  return guard([&] {
    std::unique_ptr<Runner> runner(new Runner(model, ops, pool));
    runner->runs_.reserve(static_cast<size_t>(limits.sequences));
    runner->logits_.resize(static_cast<size_t>(model.config.vocab));
    take(runner->reserve(limits.tokens, limits.sequences));
    return runner;
  });
}

Runner::~Runner() { ops_.device().release(indices_); }

Result<void> Runner::reserve(int tokens, int outputs) {
  if (tokens <= max_tokens_ && outputs <= max_outputs_) return {};
  return guard([&] {
    tokens = std::max(tokens, max_tokens_);
    outputs = std::max(outputs, max_outputs_);
    const auto room = static_cast<size_t>(tokens);
    for (auto* list : {&tokens_, &positions_, &outputs_}) list->reserve(room);
    rows_.reserve(room);
    best_.reserve(room);
    if (Result<void> planned = plan(tokens, outputs); !planned) {
      if (max_tokens_ > 0) take(plan(max_tokens_, max_outputs_));  // as before
      throw std::move(planned.error());
    }
    void* const memory = take(ops_.device().allocate(3 * room * sizeof(int32_t)));
    ops_.device().release(std::exchange(indices_, memory));
    max_tokens_ = tokens;
    max_outputs_ = outputs;
  });
}

Result<void> Runner::plan(int tokens, int outputs) {
  const auto shape = [](int n) { return Tensor{nullptr, DType::kI32, {.rows = 1, .cols = n}}; };
  const ops::Batch largest{.tokens = shape(tokens),
                           .positions = shape(tokens),
                           .outputs = shape(outputs),
                           .layers = pool_.layers()};
  return ops_.plan(largest, [&](const ops::Batch& b) { model::forward(*model_.architecture, ops_, b); });
}

Result<void> Runner::run(std::span<const Piece> pieces) {
  return guard([&] {
    const ops::Batch batch = fill(pieces);
    result_ = ops_.run(batch, [&] { return model::forward(*model_.architecture, ops_, batch); });
  });
}

ops::Batch Runner::fill(std::span<const Piece> pieces) {
  tokens_.clear();
  positions_.clear();
  outputs_.clear();
  rows_.clear();
  runs_.clear();
  for (const Piece& piece : pieces) {
    Sequence& s = *piece.sequence;
    runs_.push_back({.first_row = static_cast<int32_t>(tokens_.size()),
                     .rows = static_cast<int32_t>(piece.count),
                     .position = static_cast<int32_t>(piece.first),
                     .pages = s.pages});
    for (int64_t p = piece.first; p < piece.first + piece.count; ++p) {
      if (wants(s, p)) {
        outputs_.push_back(static_cast<int32_t>(tokens_.size()));
        rows_.push_back({piece, p});
      }
      tokens_.push_back(s.tokens[p]);
      positions_.push_back(static_cast<int32_t>(p));
    }
  }
  return {.tokens = upload(tokens_, 0),
          .positions = upload(positions_, 1),
          .outputs = upload(outputs_, 2),
          .runs = runs_,
          .layers = pool_.layers()};
}

Tensor Runner::upload(const std::vector<int32_t>& values, int slot) {
  const Tensor to{static_cast<int32_t*>(indices_) + int64_t{slot} * max_tokens_,
                  DType::kI32,
                  {.rows = 1, .cols = static_cast<int64_t>(values.size())}};
  ops_.device().write(to, values.data());
  return to;
}

std::span<const float> Runner::logits(int row) {
  Tensor one = result_;
  one.shape.rows = 1;
  one.data = static_cast<float*>(result_.data) + row * result_.cols();
  ops_.device().read(logits_.data(), one);
  return logits_;
}

std::span<const int32_t> Runner::greedy(int32_t vocab) {
  best_.resize(rows_.size());
  if (!ops_.greedy(result_, vocab, best_)) best_.clear();
  return best_;
}

Error Runner::explain(const Piece& piece) {
  ops_.check_layers(true);
  const Result<void> again = run({&piece, 1});
  ops_.check_layers(false);
  if (!again) return again.error();
  const auto layer = ops_.bad_layer();
  const std::string where = layer ? fmt::format("layer {} (blk.{})", *layer, *layer)
                                  : "what follows the last layer (output_norm, output)";
  return Error(
      Code::kFailed,
      fmt::format("[engine] {}: at position {} values are not finite from {} on; no token can be chosen",
                  model_.file.name(), piece.first, where));
}

}  // namespace juno::engine
