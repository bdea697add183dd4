// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/prove.h"

#include <cstring>

#include "ops/reference.h"

namespace juno::gpu {
namespace {

constexpr int kSize = 256;

// Device memory for the time of the proof.
class Loan {
 public:
  explicit Loan(ops::Device& device) : device_(device) {}
  ~Loan() {
    for (void* block : blocks_) device_.release(block);
  }
  template <class T>
  Tensor lend(const std::vector<T>& values, DType dtype) {
    blocks_.reserve(blocks_.size() + 1);
    blocks_.push_back(take(device_.allocate(values.size() * sizeof(T))));
    const Tensor to{blocks_.back(), dtype, {.rows = 1, .cols = static_cast<int64_t>(values.size())}};
    device_.write(to, values.data());
    return to;
  }

 private:
  ops::Device& device_;
  std::vector<void*> blocks_;
};

std::vector<float> norm_of(ops::Executor& op, const std::vector<float>& values) {
  Loan loan(op.device());
  const std::vector<int32_t> zero = {0};
  const Tensor x = loan.lend(values, DType::kF32), weight = loan.lend(values, DType::kF32);
  const ops::Batch batch{.tokens = loan.lend(zero, DType::kI32),
                         .positions = loan.lend(zero, DType::kI32),
                         .outputs = loan.lend(zero, DType::kI32)};
  const auto forward = [&] {
    op.begin(batch);
    return op.norm(x, {.weight = weight, .eps = 1e-5f});
  };
  take(op.plan(batch, [&](const ops::Batch&) { forward(); }));
  std::vector<float> y(values.size());
  op.device().read(y.data(), forward());
  return y;
}

}  // namespace

void prove(ops::Executor& op) {
  std::vector<float> values;
  for (int i = 0; i < kSize; ++i) values.push_back(static_cast<float>((i * 37) % 101 - 50) / 16);
  ops::Reference reference;
  const std::vector<float> expected = norm_of(reference, values), got = norm_of(op, values);
  if (std::memcmp(expected.data(), got.data(), kSize * sizeof(float)) == 0) return;
  const ops::DeviceInfo info = op.device().info();
  fail(Code::kDevice, "[backend/gpu] {} ({}) computes wrong bits: a norm gave {}, not {}", info.name,
       info.target, got[1], expected[1]);
}

}  // namespace juno::gpu
