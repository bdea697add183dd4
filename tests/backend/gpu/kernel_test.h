// SPDX-License-Identifier: Apache-2.0
// What tests of single kernels share: a launch on the host in two weathers, weights as the
// device has them.
#pragma once
#include <gtest/gtest.h>

#include <optional>

#include "backend/gpu/host/kernels.h"
#include "backend/gpu/plan.h"
#include "backend/gpu/repack.h"
#include "ops/harness.h"
#include "ops/reference.h"

namespace juno::gpu::test {

using ops::test::Bits;
using ops::test::Memory;

// Runs launches that write y in two weathers, each the other's opposite: where the results differ there is a
// race. Returns the bits.
inline Bits run_both_ways(const std::vector<Launch>& launches, const Tensor& y) {
  std::optional<Bits> first;
  for (const uint32_t weather : {0u, 7u}) {
    std::memset(y.data, 0x7f, static_cast<size_t>(y.shape.size()) * sizeof(float));
    host::run(launches, host::Weather(weather));
    if (!first) first = ops::test::bits_of(y);
    EXPECT_EQ(ops::test::bits_of(y), *first) << "the result depends on the weather";
  }
  return *first;
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
