// SPDX-License-Identifier: Apache-2.0
// The CPU backend: the reference's results from many threads and the widest instructions the processor has.
// How the work is shared out changes no bit.
#pragma once
#include <algorithm>
#include <memory>
#include <string>

#include "backend/cpu/vec/isa.h"
#include "base/thread_pool.h"
#include "ops/executor.h"

namespace juno::cpu {

struct CpuOptions {
  int threads = 0;  // 0: as many as the process may use (base/cpu_limits.h)
  std::string isa;  // of isas(); empty: the fastest that the processor has
  ops::Activations activations = ops::Activations::kInt8;
};

// Fails with Code::kDevice for an instruction set that the processor lacks, Code::kUsage for one that nobody
// knows.
Result<std::unique_ptr<ops::Executor>> open_cpu(const CpuOptions& options);

class CpuOps final : public ops::Executor {
 public:
  CpuOps(int threads, const Isa& isa, ops::Activations activations);

  std::string_view backend() const override { return "cpu"; }
  std::string_view isa() const override { return kernels_.name; }
  int threads() const override { return pool_.threads(); }

 protected:
  size_t linear_scratch(const Tensor& x, const ops::Linear& w) const override;
  size_t attention_scratch(const Attend& a) const override;
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
  size_t product_scratch(int64_t tokens, const Tensor& weight) const;
  void multiply(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias,
                std::byte* scratch);
  void store_cache(const Attend& a);

  // body(begin, end) over pieces of [0, n), on all threads where n is worth it.
  template <class Body>
  void elements(int64_t n, Body&& body) {
    if (n < kWorthSharing) return body(int64_t{0}, n);
    pool_.parallel_for(static_cast<int>((n + kPiece - 1) / kPiece),
                       [&](int piece, int) { body(piece * kPiece, std::min((piece + 1) * kPiece, n)); });
  }

  // body(i) for i in [0, n), `work` elements each.
  template <class Body>
  void each(int64_t n, int64_t work, Body&& body) {
    if (n * work < kWorthSharing) {
      for (int64_t i = 0; i < n; ++i) body(i);
    } else {
      pool_.parallel_for(static_cast<int>(n), [&](int i, int) { body(int64_t{i}); });
    }
  }

  // Elements: below, waking another thread costs more than it saves.
  static constexpr int64_t kWorthSharing = 8192, kPiece = 4096;

  const Kernels& kernels_;
  ThreadPool pool_;
};

}  // namespace juno::cpu
