// SPDX-License-Identifier: Apache-2.0
// The whole mathematics of a transformer. Architectures are written against Ops; backends implement it;
// neither sees the other. What each verb computes, to the bit, is docs/numerics.md; ops/reference is that
// text in code.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/batch.h"
#include "ops/device.h"
#include "tensor/tensor.h"

namespace juno::ops {

// How tensor parallelism cuts a weight: by its rows (outputs) or by its columns (inputs, summed afterwards).
enum class Split : uint8_t { kNone, kOut, kIn };

enum class Act : uint8_t { kSilu, kGeluTanh, kGeluErf };

// y = x · weightᵀ + bias
struct Linear {
  Tensor weight;  // [out, in], any format of quant/formats.h
  Tensor bias;    // [1, out] f32, or nothing
  Split split = Split::kNone;
};

// RMS norm, or layer norm when `centred`. A weight shorter than a row normalises each run of its length
// alone: with [1, head_dim] that is the per-head norm of q and k.
struct Norm {
  Tensor weight;  // [1, n] f32
  Tensor bias;    // [1, n] f32, or nothing
  float eps = 0;
  bool centred = false;
};

// Rotary embedding. Pair i of a head turns by position · freq[i]; elements past 2·freq.size() stand still.
struct Rope {
  int head_dim = 0;
  bool interleaved = false;  // pairs (2i, 2i+1), else (i, i + pairs)
  std::vector<double> freq;  // [pairs], radians per position, scaling included
  double magnitude = 1;      // multiplies cos and sin (YaRN, LongRoPE)
};

// Causal attention. The numbers of heads follow from the widths of q, k and v.
struct Attention {
  int key_dim = 0, value_dim = 0;
  double scale = 0;    // of the dot product
  double softcap = 0;  // 0: none; else softcap · tanh(score / softcap)
  int window = 0;      // 0: none; else position p sees p-window+1 … p
};

// How a router's logits become expert weights.
struct Router {
  int top_k = 0;
  bool sigmoid = false;   // else softmax over all experts
  bool normalise = true;  // divide the chosen weights by their sum
};

struct Routes {
  Tensor ids;      // [tokens, top_k] i32, in order of choice
  Tensor weights;  // [tokens, top_k] f32
};

// The gated MLPs of a mixture; plane e of each weight is expert e.
struct Experts {
  Tensor gate, up;  // [experts, ffn, dim]
  Tensor down;      // [experts, dim, ffn]
  Act act = Act::kSilu;
};

// Activations are f32 [tokens, width], live in the backend's arena and are gone after the next begin(); only
// what passes through end_layer() outlives its layer.
class Ops {
 public:
  virtual ~Ops() = default;
  virtual Device& device() = 0;

  // A forward pass begins with begin(); `batch` and what it points to stay unchanged until the next one.
  virtual void begin(const Batch& batch) = 0;
  virtual Tensor end_layer(int layer, const Tensor& x) = 0;

  virtual Tensor embed(const Tensor& table, const Tensor& tokens) = 0;  // table [vocab, dim] -> [tokens, dim]
  virtual Tensor linear(const Tensor& x, const Linear& w) = 0;          // [tokens, in] -> [tokens, out]
  virtual Tensor norm(const Tensor& x, const Norm& w) = 0;
  virtual Tensor rope(const Tensor& x, const Rope& rope) = 0;  // x [tokens, heads*head_dim], batch positions
  // Stores k and v at the batch's positions, then attends. q [tokens, heads*key_dim], k [tokens,
  // kv_heads*key_dim], v [tokens, kv_heads*value_dim] -> [tokens, heads*value_dim].
  virtual Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& how,
                           const KvView& kv) = 0;
  virtual Tensor gated(Act act, const Tensor& gate, const Tensor& up) = 0;  // act(gate) ∘ up
  virtual Tensor add(const Tensor& a, const Tensor& b) = 0;
  virtual Tensor scale(const Tensor& x, float factor) = 0;
  virtual Tensor softcap(const Tensor& x, float cap) = 0;             // cap · tanh(x / cap)
  virtual Tensor rows(const Tensor& x, const Tensor& index) = 0;      // index [1, n] -> [n, width]
  virtual Routes route(const Tensor& logits, const Router& how) = 0;  // logits [tokens, experts]
  virtual Tensor experts(const Tensor& x, const Experts& w, const Routes& routes) = 0;

  // Composites are what these bodies say. A backend may take fewer steps to the same bits.

  // Several products of one x: auto [q, k, v] = op.linears(x, wq, wk, wv).
  template <class... W>
  std::array<Tensor, sizeof...(W)> linears(const Tensor& x, const W&... w) {
    const Linear* const each[] = {&w...};
    std::array<Tensor, sizeof...(W)> y;
    linear_each(x, each, y);
    return y;
  }
  virtual void linear_each(const Tensor& x, std::span<const Linear* const> w, std::span<Tensor> y) {
    for (size_t i = 0; i < w.size(); ++i) y[i] = linear(x, *w[i]);
  }
  virtual Tensor gated_linear(Act act, const Tensor& x, const Linear& gate, const Linear& up) {
    const auto [g, u] = linears(x, gate, up);
    return gated(act, g, u);
  }
  virtual Tensor add_linear(const Tensor& a, const Tensor& x, const Linear& w) {
    return add(a, linear(x, w));
  }
};

}  // namespace juno::ops
