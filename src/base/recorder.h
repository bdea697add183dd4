// SPDX-License-Identifier: Apache-2.0
// What ran, how often and on how many bytes, and what ran elsewhere than asked. Written by the one thread
// that drives a backend, read by any; recording allocates nothing.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace juno {

struct OpCount {
  std::string_view name;
  uint64_t calls = 0, failures = 0;
  uint64_t weight_bytes = 0;  // of weights read
  uint64_t moved_bytes = 0;   // of activations and cache, read and written
  uint64_t nanoseconds = 0;   // only while timing is on
};

// An operation that was asked for and ran somewhere else, or in a slower way. The texts are literals.
struct Declined {
  std::string_view op, type, stage, reason;
  std::array<int64_t, 3> shape{};
  uint64_t count = 0;
  bool same_as(const Declined& other) const {
    return op == other.op && type == other.type && stage == other.stage && reason == other.reason &&
           shape == other.shape;
  }
};

// What a device was given to do, and what crossed the border to it.
struct Traffic {
  uint64_t launches = 0, failures = 0;  // of kernels, or of graphs of them
  uint64_t written = 0, read = 0;       // bytes to the device, and from it
};

struct Snapshot {
  std::vector<OpCount> ops;
  std::vector<Declined> declined;
  uint64_t declined_unlisted = 0;  // those for which the list had no room
  Traffic traffic;                 // filled in by who knows the device (Executor::snapshot)

  uint64_t weight_bytes() const;  // over all ops
  uint64_t declined_count() const;
  uint64_t failures() const;
  // What happened between `before` and this one.
  Snapshot since(const Snapshot& before) const;
  // What happened here and there, of recorders with the same operations.
  Snapshot plus(const Snapshot& other) const;
};

class Recorder {
 public:
  static constexpr int kMaxOps = 32, kMaxDeclined = 64;

  // Operations are known by their index in `names`, whose texts outlive the recorder.
  explicit Recorder(std::span<const std::string_view> names);

  void count(int op, uint64_t weight_bytes, uint64_t moved_bytes);
  void moved(int op, uint64_t bytes) { add(ops_[op].moved_bytes, bytes); }
  void failed(int op);
  // Adds what a snapshot's difference says once more.
  void repeat(const Snapshot& counts);
  void declined(const Declined& event);

  void set_timing(bool on) { timing_ = on; }
  bool timing() const { return timing_; }

  Snapshot snapshot() const;

  // Adds the time until it goes out of scope to an operation, when timing is on.
  class Timer {
   public:
    Timer(Recorder& recorder, int op) : recorder_(recorder), op_(op), on_(recorder.timing_) {
      if (on_) start_ = Clock::now();
    }
    ~Timer() {
      if (on_) add(recorder_.ops_[op_].nanoseconds, std::chrono::nanoseconds(Clock::now() - start_).count());
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    using Clock = std::chrono::steady_clock;
    Recorder& recorder_;
    int op_;
    bool on_;
    Clock::time_point start_;
  };

 private:
  using Cell = std::atomic<uint64_t>;
  struct Row {
    Cell calls = 0, failures = 0, weight_bytes = 0, moved_bytes = 0, nanoseconds = 0;
  };
  // One writer: a load and a store are enough, and cheaper than a locked add.
  static void add(Cell& cell, uint64_t n) {
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::vector<std::string_view> names_;
  std::array<Row, kMaxOps> ops_;
  std::atomic<bool> timing_ = false;
  mutable std::mutex mutex_;  // of the declined events, which are rare
  std::array<Declined, kMaxDeclined> declined_;
  int declined_size_ = 0;
  uint64_t declined_unlisted_ = 0;
};

}  // namespace juno
