// SPDX-License-Identifier: Apache-2.0
#include "api/service_embedding.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace juno::api {

Pooling::Pooling(const std::string& name, int64_t positions) : first_(0), last_(positions - 1) {
  if (name == "cls") last_ = 0;
  else if (name == "last") first_ = last_;
  else if (name != "mean") fail(Code::kUsage, "[api] pooling \"{}\": known are mean, cls and last", name);
}

void Pooling::add(int64_t position, std::span<const float> state) {
  if (position < first_ || position > last_) return;
  if (position == first_) sum_.assign(state.size(), 0);  // again, where the prompt is computed again
  for (size_t i = 0; i < state.size(); ++i) sum_[i] += static_cast<double>(state[i]);
}

// The number of positions falls out of the length.
std::vector<float> Pooling::unit() const {
  double squares = 0;
  for (const double v : sum_) squares += v * v;
  const double length = squares > 0 ? std::sqrt(squares) : 1;
  std::vector<float> unit;
  unit.reserve(sum_.size());
  for (const double v : sum_) unit.push_back(static_cast<float>(v / length));
  return unit;
}

EmbeddingTask::EmbeddingTask(EmbeddingWork work) : work_(std::move(work)), open_(work_.inputs.size()) {
  poolings_.reserve(work_.inputs.size());
  for (const auto& input : work_.inputs)
    poolings_.emplace_back(work_.pooling, static_cast<int64_t>(input.size()));
}

template <class F>
void EmbeddingTask::attempt(F&& body) {
  try {
    body();
  } catch (Error& error) {
    if (!error_) error_ = heard_as(std::move(error));
  } catch (const std::exception&) {
    if (!error_) error_ = out_of_memory();
  }
}

void EmbeddingTask::begin(Workshop& workshop) {
  workshop_ = &workshop;
  attempt([&] {
    for (size_t i = 0; i < work_.inputs.size(); ++i) submit(i);
  });
  if (error_) stop_all();
  if (left_ == 0) conclude();
}

void EmbeddingTask::submit(size_t input) {
  engine::Request r;
  r.prompt = std::move(work_.inputs[input]);
  r.max_tokens = 0;
  r.priority = work_.priority;
  r.tenant = work_.tenant;
  r.reuse = 0;
  r.keep = false;
  r.on_prefill = [this](int64_t) { started_ = true; };
  r.on_hidden = [this, input](int64_t position, std::span<const float> state) {
    attempt([&] { poolings_[input].add(position, state); });
  };
  r.on_finish = [this, input](const engine::Finish& finish) { finished(input, finish); };
  open_[input] = take(workshop_->engine.submit(std::move(r)));
  ++left_;
}

void EmbeddingTask::finished(size_t input, const engine::Finish& finish) {
  open_[input] = 0;
  --left_;
  workshop_->tally.prompt_tokens += finish.prompt_tokens;
  attempt([&] {
    if (finish.error) throw Error(*finish.error);
    if (finish.reason == FinishReason::kCancelled) juno::fail(Code::kBusy, "[api] the model is being closed");
  });
  if (error_) stop_all();
  if (left_ == 0) conclude();
}

void EmbeddingTask::fail(const Error& error) {
  if (done_) return;
  attempt([&] { throw Error(error); });
  stop_all();
  conclude();
}

void EmbeddingTask::stop_all() {
  for (const engine::SequenceId id : open_)
    if (id != 0) workshop_->engine.cancel(id);
}

void EmbeddingTask::conclude() {
  if (std::exchange(done_, true)) return;
  Vectors vectors;
  attempt([&] {
    for (const Pooling& p : poolings_) vectors.push_back(p.unit());
  });
  ++(error_ ? workshop_->tally.failed : workshop_->tally.finished);
  if (error_) promise_.set_exception(std::make_exception_ptr(std::move(*error_)));
  else promise_.set_value(std::move(vectors));
}

}  // namespace juno::api
