// SPDX-License-Identifier: Apache-2.0
// docs/numerics.md in code: one thread, plain loops, slow. Every other backend is compared with it by memcmp.
#pragma once
#include "ops/executor.h"

namespace juno::ops {

class Reference final : public Executor {
 public:
  explicit Reference(Activations activations = Activations::kInt8);

  std::string_view backend() const override { return "reference"; }
  std::string_view isa() const override { return "scalar"; }

 protected:
  size_t linear_scratch(const Tensor& x, const Linear& w) const override;
  size_t attention_scratch(const Attend& a) const override;
  size_t experts_scratch(const Tensor& x, const Experts& w, int top_k) const override;

  void do_embed(const Tensor& y, const Tensor& table, const Tensor& tokens) override;
  void do_linear(const Tensor& y, const Tensor& x, const Linear& w, std::byte* scratch) override;
  void do_norm(const Tensor& y, const Tensor& x, const Norm& w) override;
  void do_rope_table(const Tensor& table, const Rope& rope, const Tensor& positions) override;
  void do_rope(const Tensor& y, const Tensor& x, const Rope& rope, const Tensor& table) override;
  void do_attention(const Attend& a, std::byte* scratch) override;
  void do_gated(const Tensor& y, Act act, const Tensor& gate, const Tensor& up) override;
  void do_add(const Tensor& y, const Tensor& a, const Tensor& b) override;
  void do_scale(const Tensor& y, const Tensor& x, float factor) override;
  void do_softcap(const Tensor& y, const Tensor& x, float cap) override;
  void do_rows(const Tensor& y, const Tensor& x, const Tensor& index) override;
  void do_route(const Routes& y, const Tensor& logits, const Router& how) override;
  int do_experts(const Tensor& y, const Tensor& x, const Experts& w, const Routes& routes,
                 std::byte* scratch) override;
  void do_copy(const Tensor& y, const Tensor& x) override;
  bool do_finite(const Tensor& x) override;

 private:
  void multiply_row(const Tensor& weight, const float* x, float* y, std::byte* scratch) const;
};

}  // namespace juno::ops
