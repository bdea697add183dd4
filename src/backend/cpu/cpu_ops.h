// SPDX-License-Identifier: Apache-2.0
// The CPU backend: the reference's results from many threads and the widest instructions the processor has.
// How the work is shared out changes no bit.
#pragma once
#include <algorithm>
#include <memory>
#include <string>

#include "backend/cpu/cpu_device.h"
#include "backend/cpu/vec/isa.h"
#include "base/thread_pool.h"
#include "ops/executor.h"

namespace juno::cpu {

inline size_t aligned(size_t bytes) { return (bytes + Arena::kAlign - 1) / Arena::kAlign * Arena::kAlign; }

struct CpuOptions {
  int threads = 0;  // 0: as many as the process may use (base/cpu_limits.h)
  std::string isa;  // of isas(); empty: the fastest that the processor has
  ops::Activations activations = ops::Activations::kInt8;
  std::shared_ptr<ThreadPool> pool;  // shared with others; empty: of this backend alone
  bool turn_weights = true;          // into the order that is read fastest; false: they stay in the file
};

// Fails with Code::kDevice for an instruction set that the processor lacks, Code::kUsage for one that nobody
// knows.
Result<std::unique_ptr<ops::Executor>> open_cpu(const CpuOptions& options);

class CpuOps final : public ops::Executor {
 public:
  CpuOps(std::unique_ptr<CpuDevice> device, std::shared_ptr<ThreadPool> pool, const Isa& isa,
         ops::Activations activations);

  std::string_view backend() const override { return "cpu"; }
  std::string_view isa() const override { return kernels_.name; }
  int threads() const override { return pool_->threads(); }
  ThreadPool* pool() override { return pool_.get(); }
  Tensor run(const ops::Batch& batch, const std::function<Tensor()>& forward) override;

 protected:
  size_t linear_scratch(const Tensor& x, const ops::Linear& w) const override;
  size_t products_scratch(const Products& p) const override;
  size_t attention_scratch(const Attend& a) const override;
  size_t experts_scratch(const Tensor& x, const ops::Experts& w, int top_k) const override;

  void do_embed(const Tensor& y, const Tensor& table, const Tensor& tokens) override;
  void do_linear(const Tensor& y, const Tensor& x, const ops::Linear& w, std::byte* scratch) override;
  bool fuses() const override { return true; }
  void do_products(const Products& p, std::byte* scratch) override;
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
  // A product, and whether it packs x itself or reads what an earlier one of its stage has packed.
  struct Job {
    Product product;
    const FormatKernels* format;
    bool packs = false;
  };
  // Products that wait for the same things. `together` neighbours have as many outputs, which are shared out
  // as one: a gate and what it gates.
  struct Stage {
    std::span<Job> jobs;
    int together = 1;
    std::byte* own = nullptr;  // [threads, own_bytes]
    size_t own_bytes = 0;
    int64_t weight_bytes = 0;
    int64_t piece(const Job& job, int threads) const;  // outputs that a thread takes at a time
  };
  struct Wave;

  Job job(int64_t tokens, const ops::Linear& w) const;
  // after(first product, last product, first output, last output) follows each piece.
  template <class After>
  void run_stage(const Stage& stage, After&& after);
  static void sort_choices(const Wave& wave, const ops::Routes& routes);
  Stage stage_of(const Wave& wave, int64_t first, int64_t last, bool down) const;
  struct Split;
  static constexpr int kSplitItems = 4;  // for each thread: below, the chunks of an item are shared out
  static constexpr int kParts = 128;     // rows' chunks for each thread that wait to be merged
  static constexpr int kMostChunks = 8;  // that a thread takes at a time
  size_t attend_bytes(const Attend& a) const;
  void store_cache(const Attend& a);
  AttentionItem attention_item(const Attend& a, int index) const;
  void attend_split(const Attend& a, int items, std::byte* scratch);

  // body(begin, end) over pieces of [0, n), on all threads where n is worth it.
  template <class Body>
  void elements(int64_t n, Body&& body) {
    if (n < kWorthSharing) return body(int64_t{0}, n);
    pool_->parallel_for(static_cast<int>((n + kPiece - 1) / kPiece),
                        [&](int piece, int) { body(piece * kPiece, std::min((piece + 1) * kPiece, n)); });
  }

  // body(begin, end) over parts of a row of n columns, `work` elements in all.
  template <class Body>
  void columns(int64_t work, int64_t n, Body&& body) {
    const int64_t part = work < kWorthSharing ? n : std::max<int64_t>(n / threads() / 64 * 64, 64);
    pool_->parallel_for(static_cast<int>((n + part - 1) / part),
                        [&](int i, int) { body(i * part, std::min((i + 1) * part, n)); });
  }

  // body(i) for i in [0, n), `work` elements each.
  template <class Body>
  void each(int64_t n, int64_t work, Body&& body) {
    if (n * work < kWorthSharing) {
      for (int64_t i = 0; i < n; ++i) body(i);
    } else {
      pool_->parallel_for(static_cast<int>(n), [&](int i, int) { body(int64_t{i}); });
    }
  }

  // Elements: below, waking another thread costs more than it saves.
  static constexpr int64_t kWorthSharing = 8192, kPiece = 4096;

  CpuDevice& device_;
  const Kernels& kernels_;
  const std::shared_ptr<ThreadPool> pool_;
  std::chrono::nanoseconds last_pass_{0};  // how long it took
};

}  // namespace juno::cpu
