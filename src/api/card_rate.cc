// SPDX-License-Identifier: Apache-2.0
#include "api/card_rate.h"

#include <algorithm>
#include <chrono>

namespace juno::api {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kScales = 4, kPasses = 6;
constexpr int64_t kCols = int64_t{1} << 16, kMostRows = 2048;

struct Block {
  Block(ops::Device& on, size_t bytes) : device(on), memory(take(on.allocate(bytes))) {}
  ~Block() { device.release(memory); }
  ops::Device& device;
  void* memory;
};

}  // namespace

double card_rate(ops::Executor& op) {
  ops::Device& device = op.device();
  const uint64_t free = device.memory().value_or(ops::CardMemory{}).free;
  const int64_t rows =
      std::clamp<int64_t>(static_cast<int64_t>(free / 16 / sizeof(float)) / kCols, 1, kMostRows);
  const size_t bytes = static_cast<size_t>(rows * kCols) * sizeof(float);
  const Block values(device, bytes), index(device, sizeof(int32_t));
  const Tensor x{values.memory, DType::kF32, {.rows = rows, .cols = kCols}};
  const Tensor zero{index.memory, DType::kI32, {.rows = 1, .cols = 1}};
  const ops::Batch batch{.tokens = zero, .positions = zero, .outputs = zero};
  const auto pass = [&] {
    op.begin(batch);
    Tensor y = x;
    for (int i = 0; i < kScales; ++i) y = op.scale(y, 2.0f);
    return y;
  };
  take(op.plan(batch, [&](const ops::Batch&) { pass(); }));
  double best = 0;
  for (int i = 0; i < kPasses; ++i) {
    const auto start = Clock::now();
    Tensor one = pass();
    one.shape = {.rows = 1, .cols = 1};
    float last = 0;
    device.read(&last, one);  // waits for all of it
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, kScales * 2 * static_cast<double>(bytes) / seconds);
  }
  return best;
}

}  // namespace juno::api
