// SPDX-License-Identifier: Apache-2.0
// The GPU backend: the reference's results from one GPU. A forward pass is written down as steps, joined,
// made launches of and kept: the next batch of the same shape only hands over its indices and runs them
// again.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/gpu/gpu_device.h"
#include "backend/gpu/lower.h"
#include "ops/executor.h"

namespace juno::gpu {

class GpuOps final : public ops::Executor {
 public:
  // name: as in the list of backends.
  GpuOps(std::string_view name, std::unique_ptr<Runtime> runtime, ops::Activations activations);
  ~GpuOps() override;

  std::string_view backend() const override { return name_; }
  std::string_view isa() const override { return runtime_.info().target; }
  const Runtime& runtime() const { return runtime_; }

  Tensor run(const ops::Batch& batch, const std::function<Tensor()>& forward) override;
  void begin(const ops::Batch& batch) override;
  int most_top() const override { return kMostTop; }
  void top_logits(std::span<ops::TopLogit> to) override;
  double device_seconds(int times) override;
  std::vector<ops::KernelTime> kernel_times(int times) override;

 protected:
  size_t experts_scratch(const Tensor& x, const ops::Experts& w, int top_k) const override;

  void do_embed(const Tensor& y, const Tensor& table, const Tensor& tokens) override;
  void do_linear(const Tensor& y, const Tensor& x, const ops::Linear& w, std::byte* scratch) override;
  void do_norm(const Tensor& y, const Tensor& x, const ops::Norm& w) override;
  void do_rope_table(const Tensor& table, const ops::Rope& rope, const Tensor& positions) override;
  void do_rope(const Tensor& y, const Tensor& x, const ops::Rope& rope, const Tensor& table) override;
  void do_attention(const Attend& a, std::byte* scratch) override;
  void do_gated(const Tensor& y, ops::Act act, const Tensor& gate, const Tensor& up) override;
  void do_add(const Tensor& y, const Tensor& a, const Tensor& b) override;
  void do_scale(const Tensor& y, const Tensor& x, float factor) override;
  void do_softcap(const Tensor& y, const Tensor& x, float cap) override;
  void do_rows(const Tensor& y, const Tensor& x, const Tensor& index) override;
  void do_route(const ops::Routes& y, const Tensor& logits, const ops::Router& how) override;
  int do_experts(const Tensor& y, const Tensor& x, const ops::Experts& w, const ops::Routes& routes,
                 std::byte* scratch) override;
  void do_copy(const Tensor& y, const Tensor& x) override;
  bool do_finite(const Tensor& x) override;

 private:
  // What the launches of a pass depend on beside the model: passes alike in it differ only in numbers that
  // kernels read from device memory.
  struct Shape {
    const void* memory = nullptr;  // the arena, and where the batch's indices lie
    size_t memory_bytes = 0;
    const void *tokens = nullptr, *positions = nullptr, *outputs = nullptr;
    int64_t rows = 0, wanted = 0;
    int max_chunks = 0;
    bool runs = false, alone = false, apart = false;  // PassMemory
    bool all_wanted = false, hidden = false;
    int64_t vocab = 0;  // logits of a row of which the greatest are wanted; 0: no row's
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  struct Program {
    Shape shape;
    std::vector<Launch> launches;
    std::unique_ptr<Graph> graph;  // from the second time on
    Tensor result;
    Snapshot counts;           // what one pass adds to the recorder, the cache that attention reads aside
    uint64_t cache_bytes = 0;  // that attention reads for each position it sees
    uint64_t used = 0;         // when, to find the oldest
  };
  struct Frequencies {
    std::vector<double> values;
    double* data = nullptr;  // on the device
  };

  Shape shape_of(const ops::Batch& batch) const;
  void follow_cache(std::span<const ops::KvLayer> layers);
  Program& program(const ops::Batch& batch, const std::function<Tensor()>& forward);
  void record(Program& p, const ops::Batch& batch, const std::function<Tensor()>& forward);
  void play(Program& p);
  Program* last();
  void recount(const Program& p, const ops::Batch& batch);
  void step(Step step);
  Lowered lower_steps(const Steps& steps);
  void append_top(Program& p);
  void hand_over(const ops::Batch& batch);
  void grow(void*& memory, size_t& bytes, size_t wanted, bool on_host = false);
  const double* frequencies(const std::vector<double>& values);

  const std::string name_;
  Runtime& runtime_;
  Lowering how_;
  bool recording_ = false;
  Steps steps_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<ops::KvLayer> cache_;  // that the programs read and write
  uint64_t passes_ = 0;
  uint64_t seen_ = 0;  // positions whose keys and values the last pass read
  std::vector<Frequencies> frequencies_;

  // Handed over before a pass: where the greatest logits of each wanted row go and a zero for each, then the
  // index of each row's first page, then all pages. `there_`: what the device has already.
  std::vector<int32_t> numbers_, there_;
  void* numbers_memory_ = nullptr;
  size_t numbers_bytes_ = 0;
  void* counters_ = nullptr;  // PassMemory::counters
  void* top_ = nullptr;       // the greatest logits, on the host
  size_t top_bytes_ = 0;
  void* top_parts_ = nullptr;  // what finding them takes
  size_t top_parts_bytes_ = 0;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
};

}  // namespace juno::gpu
