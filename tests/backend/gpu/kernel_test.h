// SPDX-License-Identifier: Apache-2.0
// What tests of single kernels share: a launch on the host in both orders of its threads, weights as the
// device has them.
#pragma once
#include <gtest/gtest.h>

#include "backend/gpu/host/kernels.h"
#include "backend/gpu/plan.h"
#include "backend/gpu/repack.h"
#include "ops/harness.h"
#include "ops/reference.h"

namespace juno::gpu::test {

using ops::test::Bits;
using ops::test::Memory;

// Runs a launch that writes y with threads taking turns forwards and backwards: where the results differ
// there is a race. Returns the bits.
inline Bits run_both_ways(const std::vector<Launch>& launches, const Tensor& y) {
  const auto once = [&](host::Order order) {
    std::memset(y.data, 0x7f, static_cast<size_t>(y.shape.size()) * sizeof(float));
    for (const Launch& launch : launches) host::run(launch, order);
    return ops::test::bits_of(y);
  };
  const Bits forward = once(host::Order::kForward);
  EXPECT_EQ(once(host::Order::kBackward), forward) << "the result depends on the order of threads";
  return forward;
}

// Owns device copies of weights.
class Weights {
 public:
  Weight upload(const Tensor& w) {
    const auto format = static_cast<uint32_t>(w.dtype);
    const uint64_t plane = device_bytes(format, w.rows(), w.cols());
    auto& bytes = memory_.emplace_back(plane * static_cast<uint64_t>(w.shape.planes) / 16);
    auto* to = reinterpret_cast<uint8_t*>(bytes.data());
    for (int64_t p = 0; p < w.shape.planes; ++p)
      repack_on_host(format, w.rows(), w.cols(), ops::plane(w, p).data,
                     to + plane * static_cast<uint64_t>(p));
    return {to, format, static_cast<int32_t>(w.rows()), static_cast<int32_t>(w.cols()), plane};
  }

 private:
  std::deque<std::vector<Quad32>> memory_;
};

inline Tensor zeros(Memory& memory, int64_t rows, int64_t cols) { return memory.f32(rows, cols, 0, 0); }
inline NormWeights norm_weights(const ops::Norm& n) {
  return {n.weight.f32(), n.bias ? n.bias.f32() : nullptr, n.eps, n.centred};
}

}  // namespace juno::gpu::test
