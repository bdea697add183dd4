// SPDX-License-Identifier: Apache-2.0
// A device that only adds up what another one would be asked for: loading onto it is how memory is estimated
// before any is taken. No weight is read.
#pragma once
#include "ops/device.h"
#include "ops/weight.h"

namespace juno::ops {

class LedgerDevice final : public Device {
 public:
  explicit LedgerDevice(const Device& of) : of_(of) {}

  Result<void*> allocate(size_t bytes) override {
    bytes_ += of_.allocation_bytes(bytes);
    return this;  // not to be followed
  }
  void release(void* /*memory*/) override {}
  Result<Tensor> upload(const Tensor& host) override {
    bytes_ += of_.upload_bytes(host);
    if (!format_of(host).is_float) room_ = of_.own_bytes();
    return host;
  }
  void write(const Tensor& /*to*/, const void* /*from*/) override {}
  void read(void* /*to*/, const Tensor& /*from*/) override {}

  uint64_t bytes() const { return bytes_; }
  // What the device takes for itself while it uploads integer weights, and gives back when memory is
  // allocated.
  uint64_t room() const { return room_; }

 private:
  const Device& of_;
  uint64_t bytes_ = 0;
  uint64_t room_ = 0;
};

}  // namespace juno::ops
