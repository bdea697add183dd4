// SPDX-License-Identifier: Apache-2.0
// A GPU's memory as a Device: weights are repacked on their way in (repack.h) and stay until the device goes.
#pragma once
#include <memory>
#include <vector>

#include "backend/gpu/runtime.h"
#include "ops/device.h"

namespace juno::gpu {

class GpuDevice final : public ops::Device {
 public:
  explicit GpuDevice(std::unique_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  ~GpuDevice() override;

  Runtime& runtime() { return *runtime_; }

  Result<void*> allocate(size_t bytes) override;
  void release(void* memory) override { runtime_->release(memory); }
  Result<Tensor> upload(const Tensor& host) override;
  size_t own_bytes() const override;
  size_t allocation_bytes(size_t bytes) const override { return gpu::allocation_bytes(bytes); }
  size_t upload_bytes(const Tensor& host) const override;
  std::optional<ops::CardMemory> memory() const override;
  uint64_t held() const override { return runtime_->held(); }
  uint64_t peak() const override { return runtime_->peak(); }
  double copy_rate() override { return runtime_->copy_rate(); }
  ops::DeviceInfo info() const override { return runtime_->info(); }
  Traffic traffic() const override { return runtime_->traffic(); }
  void write(const Tensor& to, const void* from) override;
  void read(void* to, const Tensor& from) override;

 private:
  void repack(const Tensor& host, void* to);

  std::unique_ptr<Runtime> runtime_;
  std::vector<void*> weights_;
  void* raw_ = nullptr;  // a piece of a weight as the file has it, while weights are uploaded
};

}  // namespace juno::gpu
