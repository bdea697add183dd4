// SPDX-License-Identifier: Apache-2.0
// Matrix products of the reference (docs/numerics.md §2 to §4) and the mixture of experts (§8).
#include <algorithm>

#include "base/math.h"
#include "ops/reference.h"
#include "ops/weight.h"
#include "quant/dot.h"

namespace juno::ops {
namespace {

// One quantised row of k activations, and the room for what it leaves over.
struct Quantised {
  float *d, *rest;
  int16_t* h;
  int8_t* q;

  Quantised(std::byte* scratch, int64_t k)
      : d(reinterpret_cast<float*>(scratch)),
        rest(d + k),
        h(reinterpret_cast<int16_t*>(rest + k)),
        q(reinterpret_cast<int8_t*>(h + k)) {}
  static size_t bytes(int64_t k) {
    return static_cast<size_t>(k) * (2 * sizeof(float) + sizeof(int16_t) + sizeof(int8_t));
  }
};

size_t aligned(size_t bytes) { return (bytes + Arena::kAlign - 1) / Arena::kAlign * Arena::kAlign; }

}  // namespace

size_t Reference::linear_scratch(const Tensor& x, const Linear& /*w*/) const {
  return Quantised::bytes(x.cols());
}

// y[o] = x · row o of the weight.
void Reference::multiply_row(const Tensor& weight, const float* x, float* y, std::byte* scratch) const {
  const quant::FormatInfo& format = format_of(weight);
  const int64_t k = weight.cols(), outputs = weight.rows();
  const auto* w = static_cast<const char*>(weight.data);
  const int64_t stride = format.row_bytes(k);
  const int block = format.activation_block(k);
  if (format.is_float) {
    const quant::ActivationRow row{.x = x, .k = k, .block = block};
    for (int64_t o = 0; o < outputs; ++o) y[o] = format.dot_groups(w + o * stride, row, 0, quant::kGroups);
    return;
  }
  const Quantised into(scratch, k);
  const quant::ActivationRow row{.q = into.q, .d = into.d, .h = into.h, .k = k, .block = block};
  quant::quantise_activations(x, k, block, into.q, into.d, into.h);
  for (int64_t o = 0; o < outputs; ++o) y[o] = format.dot_groups(w + o * stride, row, 0, quant::kGroups);
  if (activations() == Activations::kInt8) return;
  quant::activation_residual(x, k, block, into.q, into.d, into.rest);
  quant::quantise_activations(into.rest, k, block, into.q, into.d, into.h);
  for (int64_t o = 0; o < outputs; ++o)
    y[o] = y[o] + format.dot_groups(w + o * stride, row, 0, quant::kGroups);
}

void Reference::do_linear(const Tensor& y, const Tensor& x, const Linear& w, std::byte* scratch) {
  for (int64_t t = 0; t < x.rows(); ++t) {
    float* out = y.f32() + t * y.cols();
    multiply_row(w.weight, x.f32() + t * x.cols(), out, scratch);
    if (!w.bias) continue;
    for (int64_t o = 0; o < y.cols(); ++o) out[o] = out[o] + w.bias.f32()[o];
  }
}

size_t Reference::experts_scratch(const Tensor& x, const Experts& w, int /*top_k*/) const {
  const int64_t dim = x.cols(), ffn = w.gate.rows();
  return aligned(Quantised::bytes(std::max(dim, ffn))) + static_cast<size_t>(dim + 2 * ffn) * sizeof(float) +
         static_cast<size_t>(w.gate.shape.planes);
}

int Reference::do_experts(const Tensor& y, const Tensor& x, const Experts& w, const Routes& routes,
                          std::byte* scratch) {
  const int64_t dim = x.cols(), ffn = w.gate.rows(), experts = w.gate.shape.planes, top_k = routes.ids.cols();
  float* gate = reinterpret_cast<float*>(scratch + aligned(Quantised::bytes(std::max(dim, ffn))));
  float* up = gate + ffn;
  float* out = up + ffn;
  auto* used = reinterpret_cast<uint8_t*>(out + dim);
  std::fill_n(used, experts, uint8_t{0});
  const auto tensor = [](float* data, int64_t cols) {
    return Tensor{.data = data, .shape = {.rows = 1, .cols = cols}};
  };

  for (int64_t t = 0; t < x.rows(); ++t) {
    float* sum = y.f32() + t * dim;
    std::fill_n(sum, dim, 0.0f);
    for (int64_t e = 0; e < experts; ++e) {
      for (int64_t i = t * top_k; i < (t + 1) * top_k; ++i) {
        if (routes.ids.i32()[i] != e) continue;
        used[e] = 1;
        multiply_row(plane(w.gate, e), x.f32() + t * dim, gate, scratch);
        multiply_row(plane(w.up, e), x.f32() + t * dim, up, scratch);
        do_gated(tensor(gate, ffn), w.act, tensor(gate, ffn), tensor(up, ffn));
        multiply_row(plane(w.down, e), gate, out, scratch);
        for (int64_t j = 0; j < dim; ++j) sum[j] = fma(routes.weights.f32()[i], out[j], sum[j]);
      }
    }
  }
  return static_cast<int>(std::count(used, used + experts, uint8_t{1}));
}

}  // namespace juno::ops
