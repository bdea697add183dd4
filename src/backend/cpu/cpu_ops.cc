// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_ops.h"

#include <atomic>
#include <cstring>

#include "base/cpu_limits.h"
#include "ops/rope_table.h"
#include "ops/route.h"
#include "ops/weight.h"

namespace juno::cpu {
namespace {

constexpr int kMaxThreads = 1024;

float* row(const Tensor& x, int64_t index) { return x.f32() + index * x.cols(); }

std::string names_of(bool (*wanted)(const Isa&)) {
  std::string names;
  for (const Isa& isa : isas())
    if (wanted(isa)) names += (names.empty() ? "" : ", ") + std::string(isa.name);
  return names;
}

const Isa& choose(const std::string& name) {
  const std::string known = names_of([](const Isa&) { return true; });
  for (const Isa& isa : isas()) {
    if (name.empty() ? isa.supported() : isa.name == name) {
      if (isa.supported()) return isa;
      fail(Code::kDevice, "[backend/cpu] this processor has no {}; known are {}, of which it has {}", name,
           known, names_of([](const Isa& one) { return one.supported(); }));
    }
  }
  fail(Code::kUsage, "[backend/cpu] unknown instruction set '{}'; known are {}", name, known);
}

}  // namespace

Result<std::unique_ptr<ops::Executor>> open_cpu(const CpuOptions& options) {
  return guard([&]() -> std::unique_ptr<ops::Executor> {
    if (options.threads < 0 || options.threads > kMaxThreads)
      fail(Code::kUsage, "[backend/cpu] {} threads: 1 to {} are possible", options.threads, kMaxThreads);
    const Isa& isa = choose(options.isa);
    std::shared_ptr<ThreadPool> pool = options.pool;
    const int allowed = cpu_limits().threads(), threads = options.threads > 0 ? options.threads : allowed;
    if (!pool) pool = std::make_shared<ThreadPool>(threads, allowed);
    else if (options.threads > 0 && options.threads != pool->threads())
      fail(Code::kUsage, "[backend/cpu] {} threads, but the pool that is shared has {}", threads,
           pool->threads());
    auto device = std::make_unique<CpuDevice>(isa.kernels(), pool, options.turn_weights);
    return std::make_unique<CpuOps>(std::move(device), std::move(pool), isa, options.activations);
  });
}

CpuOps::CpuOps(std::unique_ptr<CpuDevice> device, std::shared_ptr<ThreadPool> pool, const Isa& isa,
               ops::Activations activations)
    : Executor(std::move(device), activations),
      device_(static_cast<CpuDevice&>(Executor::device())),
      kernels_(isa.kernels()),
      pool_(std::move(pool)) {}

// Weights are turned for as long as the pass before took: the first token waits for none, those that follow
// come at half speed until all are.
Tensor CpuOps::run(const ops::Batch&, const std::function<Tensor()>& forward) {
  device_.turn_waiting(last_pass_);
  const auto start = std::chrono::steady_clock::now();
  const Tensor y = forward();
  last_pass_ = std::chrono::steady_clock::now() - start;
  return y;
}

void CpuOps::do_embed(const Tensor& y, const Tensor& table, const Tensor& tokens) {
  each(tokens.cols(), table.cols(), [&](int64_t t) {
    assert(tokens.i32()[t] >= 0 && tokens.i32()[t] < table.rows());
    device_.dequantise_row(table, tokens.i32()[t], row(y, t));
  });
}

void CpuOps::do_norm(const Tensor& y, const Tensor& x, const ops::Norm& w) {
  const NormRun how{w.weight.f32(), w.bias ? w.bias.f32() : nullptr, w.weight.cols(), w.eps, w.centred};
  each(x.rows(), x.cols(), [&](int64_t t) { kernels_.norm(row(y, t), row(x, t), x.cols() / how.n, how); });
}

void CpuOps::do_rope_table(const Tensor& table, const ops::Rope& rope, const Tensor& positions) {
  constexpr int64_t kTurnCost = 32;  // a sine and a cosine in double, counted in elements of other work
  each(positions.cols(), table.cols() * kTurnCost,
       [&](int64_t t) { ops::rope_row(positions.i32()[t], rope, row(table, t)); });
}

void CpuOps::do_rope(const Tensor& y, const Tensor& x, const ops::Rope& rope, const Tensor& table) {
  const RopeHeads shape{.heads = static_cast<int>(x.cols() / rope.head_dim),
                        .head_dim = rope.head_dim,
                        .pairs = static_cast<int>(rope.freq.size()),
                        .interleaved = rope.interleaved};
  each(x.rows(), x.cols(), [&](int64_t t) { kernels_.rope(row(y, t), row(x, t), row(table, t), shape); });
}

void CpuOps::do_gated(const Tensor& y, ops::Act act, const Tensor& gate, const Tensor& up) {
  elements(y.shape.size(), [&](int64_t begin, int64_t end) {
    kernels_.gated[static_cast<int>(act)](y.f32() + begin, gate.f32() + begin, up.f32() + begin, end - begin);
  });
}

void CpuOps::do_add(const Tensor& y, const Tensor& a, const Tensor& b) {
  elements(y.shape.size(), [&](int64_t begin, int64_t end) {
    kernels_.add(y.f32() + begin, a.f32() + begin, b.f32() + begin, end - begin);
  });
}

void CpuOps::do_scale(const Tensor& y, const Tensor& x, float factor) {
  elements(y.shape.size(), [&](int64_t begin, int64_t end) {
    kernels_.scale(y.f32() + begin, x.f32() + begin, factor, end - begin);
  });
}

void CpuOps::do_softcap(const Tensor& y, const Tensor& x, float cap) {
  elements(y.shape.size(), [&](int64_t begin, int64_t end) {
    kernels_.softcap(y.f32() + begin, x.f32() + begin, cap, end - begin);
  });
}

void CpuOps::do_rows(const Tensor& y, const Tensor& x, const Tensor& index) {
  for (int64_t i = 0; i < index.cols(); ++i) {
    assert(index.i32()[i] >= 0 && index.i32()[i] < x.rows());
    std::memcpy(row(y, i), row(x, index.i32()[i]), static_cast<size_t>(x.cols()) * sizeof(float));
  }
}

void CpuOps::do_route(const ops::Routes& y, const Tensor& logits, const ops::Router& how) {
  constexpr int64_t kExpCost = 16;  // counted in elements of other work
  each(logits.rows(), logits.cols() * how.top_k * kExpCost, [&](int64_t t) {
    ops::route_row(row(logits, t), static_cast<int>(logits.cols()), how, y.ids.i32() + t * how.top_k,
                   row(y.weights, t));
  });
}

void CpuOps::do_copy(const Tensor& y, const Tensor& x) {
  std::memcpy(y.data, x.data, static_cast<size_t>(x.shape.size()) * sizeof(float));
}

bool CpuOps::do_finite(const Tensor& x) {
  std::atomic<bool> finite = true;
  elements(x.shape.size(), [&](int64_t begin, int64_t end) {
    if (!kernels_.finite(x.f32() + begin, end - begin)) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load();
}

}  // namespace juno::cpu
