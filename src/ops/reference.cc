// SPDX-License-Identifier: Apache-2.0
#include "ops/reference.h"

#include <cstring>

#include "base/math.h"
#include "ops/host_device.h"
#include "ops/rope_table.h"
#include "ops/route.h"
#include "ops/weight.h"
#include "quant/dot.h"

namespace juno::ops {
namespace {

constexpr int kSlots = 256;  // partial sums of a norm

// Sum of f(x_0), f(x_1) …: slot i mod 256 takes element i, by `into`.
template <class Into>
float slot_sum(const float* x, int64_t n, Into&& into) {
  float slots[kSlots] = {};
  for (int64_t i = 0; i < n; ++i) slots[i % kSlots] = into(x[i], slots[i % kSlots]);
  return quant::halving_tree(slots, kSlots);
}

void norm_run(float* y, const float* x, const Norm& w) {
  const int64_t n = w.weight.cols();
  const float count = static_cast<float>(n);
  float mean = 0;
  if (w.centred) mean = slot_sum(x, n, [](float v, float sum) { return sum + v; }) / count;
  const float squares = slot_sum(x, n, [&](float v, float sum) {
    const float c = w.centred ? v - mean : v;
    return fma(c, c, sum);
  });
  const float r = 1.0f / __builtin_sqrtf(squares / count + w.eps);
  for (int64_t i = 0; i < n; ++i) {
    const float c = w.centred ? x[i] - mean : x[i];
    y[i] = (c * r) * w.weight.f32()[i];
    if (w.bias) y[i] = y[i] + w.bias.f32()[i];
  }
}

float activate(Act act, float x) {
  return act == Act::kSilu ? silu(x) : act == Act::kGeluTanh ? gelu_tanh(x) : gelu_erf(x);
}

float* row(const Tensor& x, int64_t index) { return x.f32() + index * x.cols(); }

}  // namespace

Reference::Reference(Activations activations) : Executor(std::make_unique<HostDevice>(), activations) {}

void Reference::do_embed(const Tensor& y, const Tensor& table, const Tensor& tokens) {
  const quant::FormatInfo& format = format_of(table);
  for (int64_t t = 0; t < tokens.cols(); ++t) {
    assert(tokens.i32()[t] >= 0 && tokens.i32()[t] < table.rows());
    format.dequantise_row(static_cast<char*>(table.data) + row_bytes(table) * tokens.i32()[t], table.cols(),
                          row(y, t));
  }
}

void Reference::do_norm(const Tensor& y, const Tensor& x, const Norm& w) {
  for (int64_t i = 0; i < x.shape.size(); i += w.weight.cols()) norm_run(y.f32() + i, x.f32() + i, w);
}

void Reference::do_rope_table(const Tensor& table, const Rope& rope, const Tensor& positions) {
  for (int64_t t = 0; t < positions.cols(); ++t) rope_row(positions.i32()[t], rope, row(table, t));
}

void Reference::do_rope(const Tensor& y, const Tensor& x, const Rope& rope, const Tensor& table) {
  const int64_t pairs = table.cols() / 2;
  do_copy(y, x);
  for (int64_t t = 0; t < x.rows(); ++t) {
    const float* cosines = row(table, t);
    const float* sines = cosines + pairs;
    for (int64_t head = 0; head < x.cols(); head += rope.head_dim) {
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t first = head + (rope.interleaved ? 2 * i : i);
        const int64_t second = rope.interleaved ? first + 1 : first + pairs;
        const float x0 = row(x, t)[first], x1 = row(x, t)[second];
        row(y, t)[first] = fma(x0, cosines[i], -(x1 * sines[i]));
        row(y, t)[second] = fma(x0, sines[i], x1 * cosines[i]);
      }
    }
  }
}

void Reference::do_gated(const Tensor& y, Act act, const Tensor& gate, const Tensor& up) {
  for (int64_t i = 0; i < y.shape.size(); ++i) y.f32()[i] = activate(act, gate.f32()[i]) * up.f32()[i];
}

void Reference::do_add(const Tensor& y, const Tensor& a, const Tensor& b) {
  for (int64_t i = 0; i < y.shape.size(); ++i) y.f32()[i] = a.f32()[i] + b.f32()[i];
}

void Reference::do_scale(const Tensor& y, const Tensor& x, float factor) {
  for (int64_t i = 0; i < y.shape.size(); ++i) y.f32()[i] = x.f32()[i] * factor;
}

void Reference::do_softcap(const Tensor& y, const Tensor& x, float cap) {
  for (int64_t i = 0; i < y.shape.size(); ++i) y.f32()[i] = tanh(x.f32()[i] / cap) * cap;
}

void Reference::do_rows(const Tensor& y, const Tensor& x, const Tensor& index) {
  for (int64_t i = 0; i < index.cols(); ++i) {
    assert(index.i32()[i] >= 0 && index.i32()[i] < x.rows());
    std::memcpy(row(y, i), row(x, index.i32()[i]), static_cast<size_t>(x.cols()) * sizeof(float));
  }
}

void Reference::do_route(const Routes& y, const Tensor& logits, const Router& how) {
  for (int64_t t = 0; t < logits.rows(); ++t)
    route_row(row(logits, t), static_cast<int>(logits.cols()), how, y.ids.i32() + t * how.top_k,
              row(y.weights, t));
}

void Reference::do_copy(const Tensor& y, const Tensor& x) {
  std::memcpy(y.data, x.data, static_cast<size_t>(x.shape.size()) * sizeof(float));
}

bool Reference::do_finite(const Tensor& x) {
  for (int64_t i = 0; i < x.shape.size(); ++i)
    if (!(magnitude(x.f32()[i]) < __builtin_inff())) return false;
  return true;
}

}  // namespace juno::ops
