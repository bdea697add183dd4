// SPDX-License-Identifier: Apache-2.0
// Host memory as a device: weights stay where the file is mapped.
#pragma once
#include "ops/device.h"

namespace juno::ops {

class HostDevice : public Device {
 public:
  Result<void*> allocate(size_t bytes) override;  // pages that nobody touched yet take no memory
  void release(void* memory) override;
  Result<Tensor> upload(const Tensor& host) override { return host; }
  uint64_t held() const override { return held_; }
  uint64_t peak() const override { return peak_; }
  void write(const Tensor& to, const void* from) override;
  void read(void* to, const Tensor& from) override;

 protected:
  void hold(uint64_t bytes);  // counts them

 private:
  uint64_t held_ = 0, peak_ = 0;
};

}  // namespace juno::ops
