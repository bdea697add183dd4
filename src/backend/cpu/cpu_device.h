// SPDX-License-Identifier: Apache-2.0
// Host memory whose weights lie as the kernels read them fastest: turned once, by all threads, when they are
// uploaded or, where a first token would wait for that, between the passes that follow it.
#pragma once
#include <chrono>
#include <deque>
#include <map>
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
  void copies_later(Forget forget) override { forget_ = std::move(forget); }

  // Turns weights that wait for it until none does or `time` is over; at least one unless it is zero. Not
  // while a pass runs.
  void turn_waiting(std::chrono::nanoseconds time);

  const FormatKernels& kernels_of(const Tensor& weight) const;
  // Where a weight, or an expert of one, is to be read now, and whether it is turned there.
  struct Place {
    const void* data;
    bool turned;
  };
  Place place_of(const Tensor& weight) const;
  // Row `index` of a weight, turned or not, as floats [cols].
  void dequantise_row(const Tensor& weight, int64_t index, float* to) const;

 private:
  // Weights one after another, so that small ones share a page.
  struct Pages {
    HugePages memory;
    size_t used;
  };
  // A weight of the file that is turned later, and where to.
  struct Later {
    Tensor host;
    std::byte* to;
    bool turned;
  };
  bool turns(const Tensor& weight) const;
  std::byte* room(size_t bytes);
  void turn(const Tensor& host, std::byte* to);

  const Kernels& kernels_;
  const std::shared_ptr<ThreadPool> pool_;
  const bool turn_;
  Forget forget_;
  std::vector<Pages> pages_;                 // the last is being filled
  std::map<const std::byte*, Later> later_;  // by the address of their last byte
  std::deque<Later*> waiting_;               // in the order of their uploads
};

}  // namespace juno::cpu
