// SPDX-License-Identifier: Apache-2.0
// One GPU, as far as running kernels on it goes: memory, copies, launches in order, whole sequences of
// launches kept as a graph. gpu/cuda speaks to a driver, gpu/host runs the same kernels on the CPU.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/gpu/launch.h"
#include "base/error.h"
#include "base/recorder.h"
#include "ops/device.h"

namespace juno::gpu {

inline constexpr size_t kAllocationAlign = 512;

// What an allocation takes of the device.
inline size_t allocation_bytes(size_t bytes) {
  const size_t whole = std::max<size_t>(bytes, 1);
  return whole + (kAllocationAlign - whole % kAllocationAlign) % kAllocationAlign;
}

// A sequence of launches ready to run again; what the kernels read of tokens, positions and pages lies in
// device memory and may differ each time.
class Graph {
 public:
  virtual ~Graph() = default;
};

// Work is done in the order it was asked for. All that fails throws Error with Code::kDevice and the driver's
// words. One thread at a time; not outlived by its graphs.
class Runtime {
 public:
  virtual ~Runtime() = default;

  const ops::DeviceInfo& info() const { return info_; }
  const Chip& chip() const { return chip_; }
  virtual bool on_host() const { return false; }  // device memory can be followed like any other

  virtual ops::CardMemory memory() const = 0;
  uint64_t held() const { return held_; }  // bytes allocated now
  uint64_t peak() const { return peak_; }  // and at most
  const Traffic& traffic() const { return traffic_; }

  // Aligned to kAllocationAlign; what is in it may be anything. Where there is none the Result says so, and
  // nothing else is disturbed.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  // Of the host's memory, which kernels write to where it lies: what they have for the host then needs no
  // copy. read() and release() know it.
  virtual Result<void*> allocate_on_host(size_t bytes) { return allocate(bytes); }

  // `from` may be reused at once.
  virtual void write(void* to, const void* from, size_t bytes) = 0;
  // Waits for all work before it.
  virtual void read(void* to, const void* from, size_t bytes) = 0;
  virtual void wait() = 0;

  // Bytes a second, read and written, of a large copy in the device's memory; 0 where that says nothing.
  virtual double copy_rate() { return 0; }

  virtual void launch(const Launch& launch) = 0;
  virtual std::unique_ptr<Graph> capture(std::span<const Launch> launches) = 0;
  virtual void replay(Graph& graph) = 0;
  // Runs them in their order, none beside another: the seconds that each took.
  virtual std::vector<double> time_each(std::span<const Launch> launches) = 0;

 protected:
  void hold(uint64_t bytes) {
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }
  void let_go(uint64_t bytes) { held_ -= bytes; }

  ops::DeviceInfo info_;
  Chip chip_;
  Traffic traffic_;

 private:
  uint64_t held_ = 0, peak_ = 0;
};

}  // namespace juno::gpu
