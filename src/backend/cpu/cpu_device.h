// SPDX-License-Identifier: Apache-2.0
// Host memory whose weights lie as the kernels read them fastest: turned once, when they are loaded, by all
// threads.
#pragma once
#include <memory>
#include <vector>

#include "backend/cpu/huge_pages.h"
#include "backend/cpu/kernels.h"
#include "base/thread_pool.h"
#include "ops/host_device.h"

namespace juno::cpu {

class CpuDevice final : public ops::HostDevice {
 public:
  // turn: false leaves weights where the file is mapped.
  CpuDevice(const Kernels& kernels, std::shared_ptr<ThreadPool> pool, bool turn)
      : kernels_(kernels), pool_(std::move(pool)), turn_(turn) {}

  Result<Tensor> upload(const Tensor& host) override;
  size_t upload_bytes(const Tensor& host) const override;

  const FormatKernels& kernels_of(const Tensor& weight) const;
  // Whether the weight, or the expert of one, is what upload() has turned.
  bool turned(const Tensor& weight) const;
  // Row `index` of a weight, turned or not, as floats [cols].
  void dequantise_row(const Tensor& weight, int64_t index, float* to) const;

 private:
  // Weights one after another, so that small ones share a page.
  struct Pages {
    std::byte* data;
    size_t bytes, used;
  };
  bool turns(const Tensor& weight) const;
  std::byte* room(size_t bytes);

  const Kernels& kernels_;
  const std::shared_ptr<ThreadPool> pool_;
  const bool turn_;
  HugePages memory_;
  std::vector<Pages> pages_;  // the last is being filled
};

}  // namespace juno::cpu
