// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/runtime.h"

#include <chrono>
#include <cstring>
#include <vector>

#include "backend/gpu/host/kernels.h"
#include "backend/gpu/host/memory.h"

namespace juno::gpu::host {
namespace {

class HostGraph final : public Graph {
 public:
  explicit HostGraph(std::span<const Launch> launches) : launches(launches.begin(), launches.end()) {}
  const std::vector<Launch> launches;
};

class HostRuntime final : public Runtime {
 public:
  explicit HostRuntime(const Chip& chip) {
    info_.name = "this processor";
    info_.driver = "fibres";
    info_.target = "host";
    chip_ = chip;
  }
  bool on_host() const override { return true; }
  ops::CardMemory memory() const override { return {}; }

  Result<void*> allocate(size_t bytes) override {
    return guard([&]() -> void* {
      const size_t size = allocation_bytes(bytes);
      void* const memory = size < bytes ? nullptr : memory_.take(size);
      if (!memory) fail(Code::kDevice, "[backend/gpu] the host has no {} bytes of memory", bytes);
      hold(size);
      return memory;
    });
  }

  void release(void* memory) override {
    (void)guard([&] { wait(); });  // who releases has no use for what went wrong
    if (const size_t bytes = memory_.give_back(memory); bytes > 0) let_go(bytes);
  }

  void write(void* to, const void* from, size_t bytes) override {
    wait();
    traffic_.written += bytes;
    std::memcpy(to, from, bytes);
  }
  void read(void* to, const void* from, size_t bytes) override {
    wait();
    traffic_.read += bytes;
    std::memcpy(to, from, bytes);
  }
  void wait() override {
    stream_.finish();
    memory_.check();
  }

  void launch(const Launch& launch) override {
    memory_.check(launch);
    run(stream_, launch, Weather(static_cast<uint32_t>(traffic_.launches)));
    ++traffic_.launches;
  }
  std::unique_ptr<Graph> capture(std::span<const Launch> launches) override {
    return std::make_unique<HostGraph>(launches);
  }
  void replay(Graph& graph) override {
    for (const Launch& one : static_cast<HostGraph&>(graph).launches) launch(one);
  }
  std::vector<double> time_each(std::span<const Launch> launches) override {
    using Clock = std::chrono::steady_clock;
    std::vector<double> seconds;
    for (const Launch& one : launches) {
      const auto start = Clock::now();
      launch(one);
      wait();
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    return seconds;
  }

 private:
  Memory memory_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<Runtime> make_runtime(const Chip& chip) { return std::make_unique<HostRuntime>(chip); }

}  // namespace juno::gpu::host
