// SPDX-License-Identifier: Apache-2.0
// A place where tensors live: memory, copies in and out, and the layout that its kernels want of a weight.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/recorder.h"
#include "tensor/tensor.h"

namespace juno::ops {

// What a card says of itself; nothing where it is the host.
struct DeviceInfo {
  std::string name, driver;
  std::string target;          // what the kernels were built for
  std::string kernels_sha256;  // of their image
  int index = 0;
};

struct CardMemory {
  uint64_t free = 0, total = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  // Zeroed memory of the device, aligned for its widest load; an error when there is none, never an abort.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;

  // A weight as this device's kernels want it. The result may alias `host` (a CPU that reads the file's own
  // order copies nothing), so `host` outlives it; its shape and dtype stay the logical ones.
  virtual Result<Tensor> upload(const Tensor& host) = 0;

  // Allows upload() to leave a weight where it is and to lay it out anew later, between two passes. `forget`
  // is told what of it is read no longer.
  using Forget = std::function<void(const uint8_t* data, uint64_t bytes)>;
  virtual void copies_later(Forget /*forget*/) {}

  // What allocate(bytes) and upload(host) take of this device's memory, to the byte; 0 for a weight that
  // stays where it is. Shape and type decide; nothing is read. own_bytes: what it takes for itself besides.
  virtual size_t own_bytes() const { return 0; }
  virtual size_t allocation_bytes(size_t bytes) const { return bytes; }
  virtual size_t upload_bytes(const Tensor& /*host*/) const { return 0; }

  // The memory of a card; nothing where it is the host's. `held` and `peak`: bytes that were allocated and
  // uploaded here, now and at most.
  virtual std::optional<CardMemory> memory() const { return {}; }
  virtual uint64_t held() const { return 0; }
  virtual uint64_t peak() const { return 0; }

  // Measured now: bytes a second, read and written, of a large copy in the memory of a card; 0 elsewhere.
  virtual double copy_rate() { return 0; }

  virtual DeviceInfo info() const { return {}; }
  virtual Traffic traffic() const { return {}; }  // since it was opened

  // Copies between host memory and a plain (not repacked) tensor; read() waits for the work before it.
  virtual void write(const Tensor& to, const void* from) = 0;
  virtual void read(void* to, const Tensor& from) = 0;
};

}  // namespace juno::ops
