// SPDX-License-Identifier: Apache-2.0
// A forward pass written down: what GpuOps was asked for, one step a kernel, before fuse.h joins neighbours
// and lower.h makes launches of them. Tensors are views of device memory.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <variant>
#include <vector>

#include "backend/gpu/kernels/args.h"
#include "ops/ops.h"

namespace juno::gpu {

using Tensors = std::vector<Tensor>;

struct EmbedStep {
  Tensor y, table, tokens;
  Tensors reads() const { return {}; }
  Tensors writes() const { return {y}; }
};

// Up to three products of one input, which may be rounded, normalised or gated on its way in; what follows
// the products, as MatvecArgs knows it.
struct LinearStep {
  struct Part {
    Tensor y;
    ops::Linear w;
  };
  Tensor x, up;  // up: with Source::kGated
  Source source = Source::kPlain;
  ops::Norm norm;                  // with Source::kNorm
  ops::Act act = ops::Act::kSilu;  // with Source::kGated or Epilogue::kGated
  std::vector<Part> parts;
  Epilogue epilogue = Epilogue::kStore;
  Tensor residual;  // with Epilogue::kAdd
  Tensor gated;     // with Epilogue::kGated: the result; what the parts give need not be kept

  Tensors reads() const;
  Tensors writes() const;
};

struct NormStep {
  Tensor y, x;
  ops::Norm w;
  Tensors reads() const { return {x}; }
  Tensors writes() const { return {y}; }
  bool whole_rows() const { return w.weight.cols() == x.cols(); }
};

struct RopeTableStep {
  Tensor table, positions;
  const double* freq = nullptr;  // on the device, [pairs]
  double magnitude = 1;
  Tensors reads() const { return {}; }
  Tensors writes() const { return {table}; }
};

struct RopeStep {
  Tensor y, x, table;
  RopeShape shape;
  Tensors reads() const { return {x, table}; }
  Tensors writes() const { return {y}; }
};

// With the norms of q's and k's heads, and their rope, where these were steps of their own before.
struct AttentionStep {
  Tensor y, q, k, v;
  ops::Attention how;
  ops::KvLayer layer;
  std::byte* scratch = nullptr;
  ops::Norm q_norm, k_norm;
  Tensor table;  // [tokens, 2*pairs]
  RopeShape rope;
  Tensor q_out;  // where q goes before attention; q itself if there is nothing to do
  Tensors reads() const { return {q, k, v, table}; }
  Tensors writes() const { return {y, q_out}; }
};

// What works element by element: any of its inputs may be its output.
struct ElementStep {
  Elementwise what = Elementwise::kCopy;
  Tensor y, a, b;
  float factor = 0;
  ops::Act act = ops::Act::kSilu;
  Tensors reads() const { return {a, b}; }
  Tensors writes() const { return {y}; }
};

struct RowsStep {
  Tensor y, x, index;
  Tensors reads() const { return {x}; }
  Tensors writes() const { return {y}; }
};

struct RouteStep {
  ops::Routes y;
  Tensor logits;
  ops::Router how;
  Tensors reads() const { return {logits}; }
  Tensors writes() const { return {y.ids, y.weights}; }
};

struct ExpertsStep {
  Tensor y, x;
  ops::Experts w;
  ops::Routes routes;
  std::byte* scratch = nullptr;
  Tensors reads() const { return {x, routes.ids, routes.weights}; }
  Tensors writes() const { return {y}; }
};

using Step = std::variant<EmbedStep, LinearStep, NormStep, RopeTableStep, RopeStep, AttentionStep,
                          ElementStep, RowsStep, RouteStep, ExpertsStep>;
using Steps = std::vector<Step>;

inline Tensors reads(const Step& step) {
  return std::visit([](const auto& s) { return s.reads(); }, step);
}
inline Tensors writes(const Step& step) {
  return std::visit([](const auto& s) { return s.writes(); }, step);
}

// Activations are f32, indices i32: four bytes each.
inline bool overlap(const Tensor& a, const Tensor& b) {
  const auto* from_a = static_cast<const char*>(a.data);
  const auto* from_b = static_cast<const char*>(b.data);
  return a && b && from_a < from_b + b.shape.size() * 4 && from_b < from_a + a.shape.size() * 4;
}
inline bool same(const Tensor& a, const Tensor& b) { return a && a.data == b.data && a.shape == b.shape; }

inline Tensors LinearStep::reads() const {
  Tensors all{x};
  if (up) all.push_back(up);
  if (residual) all.push_back(residual);
  return all;
}
inline Tensors LinearStep::writes() const {
  Tensors all;
  for (const Part& part : parts) all.push_back(part.y);
  if (gated) all.push_back(gated);
  return all;
}

}  // namespace juno::gpu
