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

#include "backend/gpu/launch.h"
#include "base/error.h"
#include "base/recorder.h"

namespace juno::gpu {

struct DeviceInfo {
  std::string name;    // "NVIDIA H200"
  std::string driver;  // "580.159.04, CUDA 13.0"
  std::string target;  // what the kernels run as: "sm_90"
  std::string kernels_sha256;
  int index = 0;
  Chip chip;
};

struct MemoryInfo {
  uint64_t free = 0, total = 0;
};

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

  const DeviceInfo& info() const { return info_; }
  const Chip& chip() const { return info_.chip; }
  virtual bool on_host() const { return false; }  // device memory can be followed like any other
  virtual MemoryInfo memory() const = 0;  // of the whole device
  uint64_t held() const { return held_bytes_; }  // bytes allocated now
  uint64_t peak() const { return peak_bytes_; }  // and at most

  // From now on launches and bytes to and from the device are counted there, which outlives the runtime's use.
  void count_into(Recorder* recorder) { recorder_ = recorder; }

  // Zeroed, aligned to kAllocationAlign. Where there is none the Result says so, and nothing else is disturbed.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;

  // `from` may be reused at once.
  virtual void write(void* to, const void* from, size_t bytes) = 0;
  // Waits for all work before it.
  virtual void read(void* to, const void* from, size_t bytes) = 0;
  virtual void wait() = 0;

  virtual void launch(const Launch& launch) = 0;
  virtual std::unique_ptr<Graph> capture(std::span<const Launch> launches) = 0;
  virtual void replay(Graph& graph) = 0;

 protected:
  void count_launches(uint64_t kernels) {
    if (recorder_) recorder_->launched(kernels);
  }
  void count_failure() {
    if (recorder_) recorder_->launch_failed();
  }
  void count_written(uint64_t bytes) {
    if (recorder_) recorder_->wrote(bytes);
  }
  void count_read(uint64_t bytes) {
    if (recorder_) recorder_->read(bytes);
  }
  void count_held(uint64_t bytes) {
    held_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, held_bytes_);
  }
  void count_released(uint64_t bytes) { held_bytes_ -= bytes; }

  DeviceInfo info_;

 private:
  Recorder* recorder_ = nullptr;
  uint64_t held_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace juno::gpu
