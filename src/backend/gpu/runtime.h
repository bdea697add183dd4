// SPDX-License-Identifier: Apache-2.0
// One GPU, as far as running kernels on it goes: memory, copies, launches in order, whole sequences of
// launches kept as a graph. gpu/cuda speaks to a driver, gpu/host runs the same kernels on the CPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/gpu/launch.h"
#include "base/error.h"

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

// Since the runtime was opened.
struct Traffic {
  uint64_t launches = 0, replays = 0, failures = 0;
  uint64_t written = 0, read = 0;    // bytes to and from the device
  uint64_t allocated = 0, peak = 0;  // bytes held now, and the most
};

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
  virtual MemoryInfo memory() const = 0;
  const Traffic& traffic() const { return traffic_; }

  // Zeroed, aligned to 256 bytes. Where there is none the Result says so, and nothing else is disturbed.
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
  DeviceInfo info_;
  Traffic traffic_;
};

}  // namespace juno::gpu
