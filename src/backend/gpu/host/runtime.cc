// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/runtime.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "backend/gpu/host/kernels.h"

namespace juno::gpu::host {
namespace {

class HostGraph final : public Graph {
 public:
  explicit HostGraph(std::span<const Launch> launches) : launches(launches.begin(), launches.end()) {}
  const std::vector<Launch> launches;
};

class HostRuntime final : public Runtime {
 public:
  HostRuntime() {
    info_.name = "this processor";
    info_.driver = "fibres";
    info_.target = "host";
    chip_.product_warps = 2;
    chip_.multiprocessors = 4;  // few blocks: nothing runs side by side
  }
  ~HostRuntime() override {
    for (const auto& [memory, bytes] : held_) std::free(memory);
  }

  bool on_host() const override { return true; }
  ops::CardMemory memory() const override { return {}; }

  Result<void*> allocate(size_t bytes) override {
    const size_t size = allocation_bytes(bytes);
    void* const memory = size < bytes ? nullptr : std::aligned_alloc(kAllocationAlign, size);
    if (!memory)
      return tl::unexpected(
          Error(Code::kDevice, fmt::format("[backend/gpu] the host has no {} bytes of memory", bytes)));
    std::memset(memory, 0, size);
    held_.emplace(memory, size);
    hold(size);
    return memory;
  }

  void release(void* memory) override {
    const auto held = held_.find(memory);
    if (held == held_.end()) return;
    let_go(held->second);
    held_.erase(held);
    std::free(memory);
  }

  void write(void* to, const void* from, size_t bytes) override {
    traffic_.written += bytes;
    std::memcpy(to, from, bytes);
  }
  void read(void* to, const void* from, size_t bytes) override {
    traffic_.read += bytes;
    std::memcpy(to, from, bytes);
  }
  void wait() override {}

  void launch(const Launch& launch) override {
    run(launch);
    ++traffic_.launches;
  }
  std::unique_ptr<Graph> capture(std::span<const Launch> launches) override {
    return std::make_unique<HostGraph>(launches);
  }
  void replay(Graph& graph) override {
    for (const Launch& one : static_cast<HostGraph&>(graph).launches) launch(one);
  }

 private:
  std::map<void*, size_t> held_;
};

}  // namespace

std::unique_ptr<Runtime> make_runtime() { return std::make_unique<HostRuntime>(); }

}  // namespace juno::gpu::host
