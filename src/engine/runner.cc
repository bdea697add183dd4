// SPDX-License-Identifier: Apache-2.0
// Index arrays are filled in place and copied to the device; everything else is views.
#include "engine/runner.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace juno::engine {
namespace {

// Whether the sequence wants the logits of this position, moving past the positions that were asked for.
bool wants(Sequence& s, int64_t position) {
  const auto& at = s.request.logits_at;
  const bool asked = s.next_logits < at.size() && at[s.next_logits] == position;
  s.next_logits += asked;
  const bool newest = position + 1 >= static_cast<int64_t>(s.tokens.size());  // or a guess
  return asked || (newest && s.limit > position + 1);
}

size_t index_bytes(int tokens) { return 3 * static_cast<size_t>(tokens) * sizeof(int32_t); }

// The shapes of the largest step, as Executor::plan() wants them.
ops::Batch largest(int tokens, int outputs, std::span<const ops::KvLayer> layers) {
  const auto shape = [](int n) { return Tensor{nullptr, DType::kI32, {.rows = 1, .cols = n}}; };
  return {.tokens = shape(tokens), .positions = shape(tokens), .outputs = shape(outputs), .layers = layers};
}

// Both kinds of pass, of which the larger counts.
auto pass(const model::Model& model, const model::Stage& stage) {
  return [&](const ops::Batch& b) {
    model::forward(model, stage, b);
    ops::Batch all = b;
    all.outputs = b.tokens;
    all.hidden = true;
    model::forward(model, stage, all);
  };
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::make(const model::Model& model, std::vector<model::Stage> stages,
                                             KvPool& pool, const Limits& limits, int32_t vocab) {
  return guard([&] {
    std::unique_ptr<Runner> runner(new Runner(model, std::move(stages), pool, vocab));
    runner->runs_.reserve(static_cast<size_t>(limits.sequences));
    runner->values_.resize(static_cast<size_t>(std::max<int64_t>(model.config.vocab, model.config.dim)));
    take(runner->reserve(limits.tokens, limits.rows()));
    return runner;
  });
}

Runner::~Runner() {
  for (size_t i = 0; i < stages_.size(); ++i) stages_[i].ops->device().release(indices_[i]);
}

Result<void> Runner::reserve(int tokens, int outputs) {
  if (tokens <= max_tokens_ && outputs <= max_outputs_) return {};
  return guard([&] {
    tokens = std::max(tokens, max_tokens_);
    outputs = std::max(outputs, max_outputs_);
    const auto room = static_cast<size_t>(tokens);
    for (auto* list : {&tokens_, &positions_, &outputs_}) list->reserve(room);
    joined_.reserve(3 * room);
    rows_.reserve(room);
    counts_.reserve(room);
    greatest_.reserve(static_cast<size_t>(outputs) * static_cast<size_t>(stages_.back().ops->most_top()));
    if (stages_.size() > 1) x_.resize(std::max(x_.size(), room * static_cast<size_t>(model_.config.dim)));
    if (Result<void> planned = plan(tokens, outputs); !planned) {
      if (max_tokens_ > 0) take(plan(max_tokens_, max_outputs_));  // as before
      throw std::move(planned.error());
    }
    max_outputs_ = outputs;
    if (tokens == max_tokens_) return;
    for (size_t i = 0; i < stages_.size(); ++i) {
      void* const memory = take(stages_[i].ops->device().allocate(index_bytes(tokens)));
      stages_[i].ops->device().release(std::exchange(indices_[i], memory));
    }
    max_tokens_ = tokens;
  });
}

Result<void> Runner::plan(int tokens, int outputs) {
  return guard([&] {
    for (const model::Stage& stage : stages_)
      take(stage.ops->plan(largest(tokens, outputs, pool_.layers()), pass(model_, stage)));
  });
}

Result<std::vector<size_t>> Runner::measure(const model::Model& model, std::span<const model::Stage> stages,
                                            std::span<const ops::KvLayer> layers, const Limits& limits) {
  return guard([&] {
    std::vector<size_t> bytes;
    for (const model::Stage& stage : stages) {
      const ops::Device& device = stage.ops->device();
      const auto arena =
          take(stage.ops->measure(largest(limits.tokens, limits.rows(), layers), pass(model, stage)));
      bytes.push_back(device.allocation_bytes(arena) + device.allocation_bytes(index_bytes(limits.tokens)));
    }
    return bytes;
  });
}

Result<void> Runner::run(std::span<const Piece> pieces, bool hidden) {
  return guard([&] {
    hidden_ = hidden;
    fill(pieces, hidden);
    for (size_t i = 0; i < stages_.size(); ++i) {
      ops::Executor& ops = *stages_[i].ops;
      const ops::Batch b = batch(i);
      if (i > 0) ops.device().write(ops.entrance(b.tokens.cols(), model_.config.dim), x_.data());
      const auto forward = [&] { return model::forward(model_, stages_[i], b); };
      result_ = ops.run(b, std::ref(forward));  // a reference: what it captures would be allocated
      if (i + 1 < stages_.size()) ops.device().read(x_.data(), result_);
    }
  });
}

void Runner::fill(std::span<const Piece> pieces, bool hidden) {
  tokens_.clear();
  positions_.clear();
  outputs_.clear();
  rows_.clear();
  runs_.clear();
  counts_.clear();
  greatest_.clear();
  has_greatest_ = false;
  for (const Piece& piece : pieces) {
    Sequence& s = *piece.sequence;
    runs_.push_back({.first_row = static_cast<int32_t>(tokens_.size()),
                     .rows = static_cast<int32_t>(piece.count),
                     .position = static_cast<int32_t>(piece.first),
                     .pages = s.pages});
    for (int64_t p = piece.first; p < piece.first + piece.count; ++p) {
      if (hidden || wants(s, p)) {
        outputs_.push_back(static_cast<int32_t>(tokens_.size()));
        rows_.push_back({piece, p});
        if (!hidden) ask(rows_.back());
      }
      tokens_.push_back(s.at(p));
      positions_.push_back(static_cast<int32_t>(p));
    }
  }
}

// For as many of a row's greatest logits as may decide its token.
void Runner::ask(Row& row) {
  const Sequence& s = *row.piece.sequence;
  const Request& r = s.request;
  const int64_t most = std::min(stages_.back().ops->most_top(), vocab_);
  const bool newest = row.position + 1 >= std::ssize(s.tokens);
  Need of;
  if (most > 0 && newest && !(r.on_logits && r.every_logits)) {
    const int64_t ends = r.ignore_end || r.min_tokens > 0 ? std::ssize(r.stop_ids) : 0;
    of = need(r.sampling, r.grammar ? most : ends, most);
  }
  row.whole = of.all;
  row.first = static_cast<int32_t>(greatest_.size());
  row.count = static_cast<int32_t>(of.greatest);
  counts_.push_back(row.count);
  greatest_.resize(greatest_.size() + static_cast<size_t>(row.count));
}

// What was filled in, as one stage sees it: on its device the three arrays lie one after another, so that one
// copy brings them.
ops::Batch Runner::batch(size_t stage) {
  auto* at = static_cast<int32_t*>(indices_[stage]);
  joined_.clear();
  const auto place = [&](const std::vector<int32_t>& values) {
    const Tensor there{
        at + joined_.size(), DType::kI32, {.rows = 1, .cols = static_cast<int64_t>(values.size())}};
    joined_.insert(joined_.end(), values.begin(), values.end());
    return there;
  };
  const Tensor tokens = place(tokens_), positions = place(positions_), outputs = place(outputs_);
  const Tensor all{at, DType::kI32, {.rows = 1, .cols = static_cast<int64_t>(joined_.size())}};
  stages_[stage].ops->device().write(all, joined_.data());
  const bool choosing = stage + 1 == stages_.size() && !greatest_.empty();
  return {.tokens = tokens,
          .positions = positions,
          .outputs = outputs,
          .all_wanted = outputs_.size() == tokens_.size(),
          .hidden = hidden_,
          .top = choosing ? std::span<const int32_t>(counts_) : std::span<const int32_t>(),
          .vocab = vocab_,
          .runs = runs_,
          .layers = pool_.layers()};
}

std::span<const float> Runner::values(int row) {
  const auto wanted = std::span(values_).first(static_cast<size_t>(result_.cols()));
  read(row, wanted);
  return wanted;
}

void Runner::read(int row, std::span<float> to) const {
  Tensor one = result_;
  one.shape.rows = 1;
  one.data = static_cast<float*>(result_.data) + row * result_.cols();
  stages_.back().ops->device().read(to.data(), one);
}

std::span<const ops::TopLogit> Runner::greatest(int row) {
  const Row& r = rows_[static_cast<size_t>(row)];
  if (r.count == 0) return {};
  if (!has_greatest_) stages_.back().ops->top_logits(greatest_);
  has_greatest_ = true;
  const auto of = std::span(greatest_).subspan(static_cast<size_t>(r.first), static_cast<size_t>(r.count));
  return of[0].id < 0 ? std::span<ops::TopLogit>() : of;
}

void Runner::took_whole(std::string_view why) {
  if (why.empty()) return;
  stages_.back().ops->recorder().declined(
      {.op = "sample", .type = "f32", .stage = "logits", .reason = why, .shape = {1, vocab_}});
}

Error Runner::explain(const Piece& piece) {
  for (const model::Stage& stage : stages_) stage.ops->check_layers(true);
  const Result<void> again = run({&piece, 1}, hidden_);
  for (const model::Stage& stage : stages_) stage.ops->check_layers(false);
  if (!again) return again.error();
  std::optional<int> layer;
  for (const model::Stage& stage : stages_)
    if (!layer) layer = stage.ops->bad_layer();
  const std::string where = layer ? fmt::format("layer {} (blk.{})", *layer, *layer)
                                  : "what follows the last layer (output_norm, output)";
  return Error(
      Code::kFailed,
      fmt::format("[engine] {}: at position {} values are not finite from {} on; no token can be chosen",
                  model_.file.name(), piece.first, where));
}

}  // namespace juno::engine
