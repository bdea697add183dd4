// SPDX-License-Identifier: Apache-2.0
// What a service's thread does for a caller: it begins, is looked after between two steps, and is done.
#pragma once
#include <atomic>
#include <chrono>
#include <string>

#include "engine/engine.h"
#include "engine/guide.h"

namespace juno::api {

// Short enough to be said without taking memory.
inline Error out_of_memory() { return Error(Code::kBusy, "out of memory"); }

// What guard() says when memory could not be had, as a request hears it: later there may be some.
inline Error heard_as(Error error) {
  if (error.message == "[base] out of memory") return out_of_memory();
  return error;
}

// Of all tasks so far; written by the service's thread, read by any.
struct Tally {
  std::atomic<int64_t> prompt_tokens = 0, cached_tokens = 0, new_tokens = 0;
  std::atomic<int64_t> finished = 0, failed = 0, cancelled = 0;
};

// What tasks need, on the service's thread.
struct Workshop {
  engine::Engine& engine;
  engine::Guides& guides;
  engine::Sampler& sampler;
  Tally& tally;
};

class Task {
 public:
  explicit Task(std::string session = {}) : session(std::move(session)) {}
  virtual ~Task() = default;

  // From any thread; carried out by tend().
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // All others on the service's thread; none throws. The workshop outlives the task.
  virtual void begin(Workshop& workshop) = 0;
  virtual void tend() = 0;                    // between two steps
  virtual void fail(const Error& error) = 0;  // ends it, whatever the engine knows of it
  virtual bool started() const = 0;           // something was computed for it
  virtual bool done() const = 0;

  const std::string session;  // that it belongs to
  int64_t ticket = 0;         // set by who takes it in

 protected:
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_ = false;
};

}  // namespace juno::api
