// SPDX-License-Identifier: Apache-2.0
// Tensor: a view of memory somebody else owns. Row-major, shape[0] outermost.
#pragma once
#include <cassert>
#include <cstdint>

namespace juno {

// The number GGUF files use for the type. Weights of every other type carry their id from
// quant/formats.h; only the types that activations and indices have are named here.
enum class DType : uint32_t { kF32 = 0, kF16 = 1, kI32 = 26 };

// [rows, cols], or [planes, rows, cols] for expert weights; a vector is one row.
struct Shape {
  int64_t planes = 1, rows = 0, cols = 0;
  int64_t size() const { return planes * rows * cols; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  explicit operator bool() const { return data != nullptr; }
  int64_t rows() const { return shape.rows; }
  int64_t cols() const { return shape.cols; }

  float* f32() const {
    assert(dtype == DType::kF32);
    return static_cast<float*>(data);
  }
  int32_t* i32() const {
    assert(dtype == DType::kI32);
    return static_cast<int32_t*>(data);
  }
};

}  // namespace juno
