// SPDX-License-Identifier: Apache-2.0
// Products on all threads: activations are packed token by token, then outputs are shared out.
#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "ops/weight.h"

namespace juno::cpu {
namespace {

constexpr int kPiecesPerThread = 4;  // so that a thread which starts late leaves little undone

const FormatKernels& kernels_of(const Kernels& kernels, const Tensor& weight) {
  return *std::find_if(kernels.formats, kernels.formats + kernels.format_count, [&](const FormatKernels& f) {
    return f.gguf_id == static_cast<uint32_t>(weight.dtype);
  });
}

Product product(const Kernels& kernels, int64_t tokens, const Tensor& weight, ops::Activations activations) {
  const quant::FormatInfo& format = ops::format_of(weight);
  const FormatKernels& own = kernels_of(kernels, weight);
  Product p;
  p.panels = own.panels;
  p.bytes = own.bytes;
  p.weight = weight.data;
  p.row_bytes = format.row_bytes(weight.cols());
  p.k = weight.cols();
  p.outputs = weight.rows();
  p.block = format.activation_block(weight.cols());
  p.cell = own.cell;
  p.times = own.times;
  p.tokens = static_cast<int>(tokens);
  p.planes = activations == ops::Activations::kInt8x2 && !format.is_float ? 2 : 1;
  return p;
}

size_t packed_bytes(const Product& p) {
  return static_cast<size_t>(p.pack_items()) * p.planes * p.packed_bytes();
}

size_t tensor_bytes(int64_t rows, int64_t cols) {
  const size_t bytes = static_cast<size_t>(rows * cols) * sizeof(float);
  return (bytes + Arena::kAlign - 1) / Arena::kAlign * Arena::kAlign;
}

}  // namespace

size_t CpuOps::product_scratch(int64_t tokens, const Tensor& weight) const {
  const Product p = product(kernels_, tokens, weight, activations());
  return packed_bytes(p) + static_cast<size_t>(threads()) * p.scratch_bytes();
}

size_t CpuOps::linear_scratch(const Tensor& x, const ops::Linear& w) const {
  return product_scratch(x.rows(), w.weight);
}

void CpuOps::multiply(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      std::byte* scratch) {
  Product p = product(kernels_, x.rows(), weight, activations());
  p.x = x.f32();
  p.y = y.f32();
  p.bias = bias ? bias.f32() : nullptr;
  p.packed = scratch;
  std::byte* own = scratch + packed_bytes(p);  // [threads, scratch_bytes]
  const size_t own_bytes = p.scratch_bytes();
  if (!ops::format_of(weight).is_float)
    pool_.parallel_for(p.pack_items(),
                       [&](int item, int thread) { kernels_.pack(p, item, own + thread * own_bytes); });

  const FormatKernels& format = kernels_of(kernels_, weight);
  const int64_t share = (p.outputs + threads() * kPiecesPerThread - 1) / (threads() * kPiecesPerThread);
  const int64_t piece = p.many()
                            ? std::min<int64_t>(kItemRows, (share + kPieceRows - 1) / kPieceRows * kPieceRows)
                            : (share + kPieceRows - 1) / kPieceRows * kPieceRows;
  pool_.parallel_for(static_cast<int>((p.outputs + piece - 1) / piece), [&](int i, int thread) {
    format.multiply(p, i * piece, std::min((i + 1) * piece, p.outputs), own + thread * own_bytes);
  });
}

void CpuOps::do_linear(const Tensor& y, const Tensor& x, const ops::Linear& w, std::byte* scratch) {
  multiply(y, x, w.weight, w.bias, scratch);
}

// Rows of one expert: x, gate, up, out, the indices of their tokens; and what the products need.
size_t CpuOps::experts_scratch(const Tensor& x, const ops::Experts& w, int /*top_k*/) const {
  const int64_t n = x.rows(), dim = x.cols(), ffn = w.gate.rows();
  const size_t products =
      std::max(product_scratch(n, ops::plane(w.gate, 0)),
               std::max(product_scratch(n, ops::plane(w.up, 0)), product_scratch(n, ops::plane(w.down, 0))));
  return 2 * tensor_bytes(n, dim) + 2 * tensor_bytes(n, ffn) + 2 * tensor_bytes(1, n) + products;
}

// Expert after expert in the order of their ids, each for all the tokens that chose it.
int CpuOps::do_experts(const Tensor& y, const Tensor& x, const ops::Experts& w, const ops::Routes& routes,
                       std::byte* scratch) {
  const int64_t n = x.rows(), dim = x.cols(), ffn = w.gate.rows(), top_k = routes.ids.cols();
  const auto carve = [&](int64_t rows, int64_t cols) {
    const Tensor t{.data = scratch, .shape = {.rows = rows, .cols = cols}};
    scratch += tensor_bytes(rows, cols);
    return t;
  };
  const Tensor rows_of = carve(n, dim), out = carve(n, dim), gate = carve(n, ffn), up = carve(n, ffn);
  const Tensor weights = carve(1, n), tokens = carve(1, n);
  auto* token = static_cast<int32_t*>(tokens.data);
  std::fill_n(y.f32(), y.shape.size(), 0.0f);

  int used = 0;
  for (int64_t e = 0; e < w.gate.shape.planes; ++e) {
    int64_t count = 0;
    for (int64_t i = 0; i < n * top_k; ++i) {
      if (routes.ids.i32()[i] != e) continue;
      token[count] = static_cast<int32_t>(i / top_k);
      weights.f32()[count] = routes.weights.f32()[i];
      std::copy_n(x.f32() + i / top_k * dim, dim, rows_of.f32() + count++ * dim);
    }
    if (count == 0) continue;
    ++used;
    const auto first = [&](Tensor t) {
      t.shape.rows = count;
      return t;
    };
    multiply(first(gate), first(rows_of), ops::plane(w.gate, e), {}, scratch);
    multiply(first(up), first(rows_of), ops::plane(w.up, e), {}, scratch);
    do_gated(first(gate), w.act, first(gate), first(up));
    multiply(first(out), first(gate), ops::plane(w.down, e), {}, scratch);
    each(count, dim, [&](int64_t i) {
      kernels_.add_scaled(y.f32() + token[i] * dim, out.f32() + i * dim, weights.f32()[i], dim);
    });
  }
  return used;
}

}  // namespace juno::cpu
