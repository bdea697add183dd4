// SPDX-License-Identifier: Apache-2.0
// A place where tensors live: memory, copies in and out, and the layout that its kernels want of a weight.
#pragma once
#include <cstddef>

#include "base/error.h"
#include "tensor/tensor.h"

namespace juno::ops {

class Device {
 public:
  virtual ~Device() = default;

  // Zeroed memory of the device, aligned for its widest load; an error when there is none, never an abort.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;

  // A weight as this device's kernels want it. The result may alias `host` (a CPU that reads the file's own
  // order copies nothing), so `host` outlives it; its shape and dtype stay the logical ones.
  virtual Result<Tensor> upload(const Tensor& host) = 0;

  // Copies between host memory and a plain (not repacked) tensor; read() waits for the work before it.
  virtual void write(const Tensor& to, const void* from) = 0;
  virtual void read(void* to, const Tensor& from) = 0;
};

}  // namespace juno::ops
