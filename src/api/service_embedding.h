// SPDX-License-Identifier: Apache-2.0
// Inputs on their way through the engine, each to one vector of unit length.
#pragma once
#include <future>
#include <vector>

#include "api/service.h"
#include "api/service_task.h"

namespace juno::api {

// The states of a prompt's positions, in their order, as one vector.
class Pooling {
 public:
  // name: mean, cls (of the first position) or last. Throws kUsage for another.
  Pooling(const std::string& name, int64_t positions);

  void add(int64_t position, std::span<const float> state);
  std::vector<float> unit() const;  // of length 1; zeros stay zeros

 private:
  int64_t first_, last_;     // positions that count
  std::vector<double> sum_;  // one after the other, so that no batch shows in it
};

class EmbeddingTask : public Task {
 public:
  using Vectors = std::vector<std::vector<float>>;

  // Throws what Pooling does.
  explicit EmbeddingTask(EmbeddingWork work);

  std::future<Vectors> result() { return promise_.get_future(); }  // or an Error

  void begin(Workshop& workshop) override;
  void tend() override {}
  void fail(const Error& error) override;
  bool started() const override { return started_; }
  bool done() const override { return done_; }

 private:
  void submit(size_t input);
  void finished(size_t input, const engine::Finish& finish);
  void stop_all();
  void conclude();
  template <class F>
  void attempt(F&& body);

  EmbeddingWork work_;
  Workshop* workshop_ = nullptr;
  std::vector<Pooling> poolings_;         // of each input
  std::vector<engine::SequenceId> open_;  // of each input, 0 when it is not in the engine
  size_t left_ = 0;
  std::optional<Error> error_;  // the first
  bool started_ = false, done_ = false;
  std::promise<Vectors> promise_;
};

}  // namespace juno::api
