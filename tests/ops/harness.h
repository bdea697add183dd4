// SPDX-License-Identifier: Apache-2.0
// What tests of executors share: tensors with memory of their own, a KV cache, and one verb run on a backend.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "ops/executor.h"
#include "ops/weight.h"
#include "quant/support.h"

namespace juno::ops::test {

using quant::test::Random;

// Random blocks without values so large that sums over a row could overflow.
template <class F>
void fill_moderate(Random& random, int64_t blocks, void* to) {
  auto* out = static_cast<typename F::Block*>(to);
  const auto moderate = [](const typename F::Block& block) {
    for (int i = 0; i < F::block_size; ++i)
      if (!(std::fabs(quant::value<F>(block, i)) < 1e6f)) return false;
    return true;
  };
  for (int64_t b = 0; b < blocks; ++b) {
    do out[b] = quant::test::random_block<F>(random);
    while (!moderate(out[b]));
  }
}

// Owns what its tensors point to.
class Memory {
 public:
  explicit Memory(uint64_t seed) : random_(seed) {}

  Random& random() { return random_; }

  Tensor f32(int64_t rows, int64_t cols, float low = -3, float high = 3) {
    const Tensor t = raw(DType::kF32, {.rows = rows, .cols = cols}, sizeof(float));
    for (int64_t i = 0; i < t.shape.size(); ++i) t.f32()[i] = random_.between(low, high);
    return t;
  }
  Tensor i32(const std::vector<int32_t>& values) {
    const Tensor t =
        raw(DType::kI32, {.rows = 1, .cols = static_cast<int64_t>(values.size())}, sizeof(int32_t));
    std::copy(values.begin(), values.end(), t.i32());
    return t;
  }
  Tensor zeros_f16(int64_t rows, int64_t cols) { return raw(DType::kF16, {.rows = rows, .cols = cols}, 2); }

  Tensor weight(const quant::FormatInfo& format, const Shape& shape) {
    const int64_t bytes = format.row_bytes(shape.cols) * shape.rows * shape.planes;
    const Tensor t{take(bytes), static_cast<DType>(format.gguf_id), shape};
    fill(format.gguf_id, shape.size() / format.block_elements, t.data, quant::Formats{});
    return t;
  }

 private:
  Tensor raw(DType type, const Shape& shape, int64_t size) {
    return {take(shape.size() * size), type, shape};
  }
  void* take(int64_t bytes) { return blocks_.emplace_back(static_cast<size_t>(bytes) / 8 + 8).data(); }

  template <class... Fs>
  void fill(uint32_t id, int64_t blocks, void* to, quant::List<Fs...>) {
    ((Fs::gguf_id == id ? fill_moderate<Fs>(random_, blocks, to) : void()), ...);
  }

  Random random_;
  std::deque<std::vector<double>> blocks_;
};

// A batch of one run, for verbs that look at positions only.
struct Positions {
  Memory memory{1};
  Batch batch;
  explicit Positions(int64_t tokens, int32_t first = 0) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < tokens; ++i) ids.push_back(first + static_cast<int32_t>(i));
    batch.tokens = batch.positions = batch.outputs = memory.i32(ids);
  }
};

using Bits = std::vector<uint32_t>;

inline Bits bits_of(const Tensor& x) {
  Bits bits(static_cast<size_t>(x.shape.size()));
  std::memcpy(bits.data(), x.data, bits.size() * sizeof(uint32_t));
  return bits;
}

// Plans for `body` and runs it.
inline Bits run(Executor& on, const Batch& batch, const std::function<Tensor(Ops&)>& body) {
  const auto forward = [&](const Batch& b) {
    on.begin(b);
    return body(on);
  };
  take(on.plan(batch, forward));
  return bits_of(forward(batch));
}

// Sequences with pages of their own in one layer's cache. Pages are handed out so that neighbours of a
// sequence are not neighbours in memory.
class Cache {
 public:
  Cache(Memory& memory, const KvShape& shape, int pages) : pages_(pages) {
    layer_.keys = memory.zeros_f16(int64_t{pages} * shape.kv_heads * kPagePositions, shape.key_dim);
    layer_.values = memory.zeros_f16(int64_t{pages} * shape.kv_heads * kPagePositions, shape.value_dim);
  }
  std::vector<int32_t> grant(int positions) {
    std::vector<int32_t> pages;
    for (int p = 0; p < positions; p += kPagePositions) pages.push_back(next_++ * 7 % pages_);
    return pages;
  }
  const KvLayer& layer() const { return layer_; }

 private:
  int pages_, next_ = 0;  // pages_ is no multiple of 7
  KvLayer layer_;
};

}  // namespace juno::ops::test
