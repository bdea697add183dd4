// SPDX-License-Identifier: Apache-2.0
// Sizes of a weight tensor, whose type is a number of quant/formats.h.
#pragma once
#include <cassert>
#include <cstdint>

#include "quant/format_info.h"
#include "tensor/tensor.h"

namespace juno::ops {

// The loader admits known formats only.
inline const quant::FormatInfo& format_of(const Tensor& weight) {
  const quant::FormatInfo* format = quant::find_format(static_cast<uint32_t>(weight.dtype));
  assert(format && weight.cols() % format->block_elements == 0);
  return *format;
}

inline uint64_t row_bytes(const Tensor& weight) {
  return static_cast<uint64_t>(format_of(weight).row_bytes(weight.cols()));
}
inline uint64_t plane_bytes(const Tensor& weight) {
  return row_bytes(weight) * static_cast<uint64_t>(weight.rows());
}
inline uint64_t weight_bytes(const Tensor& weight) {
  return plane_bytes(weight) * static_cast<uint64_t>(weight.shape.planes);
}

// One expert's matrix, [rows, cols].
inline Tensor plane(const Tensor& weight, int64_t index) {
  assert(index >= 0 && index < weight.shape.planes);
  return {static_cast<char*>(weight.data) + plane_bytes(weight) * static_cast<uint64_t>(index),
          weight.dtype,
          {.rows = weight.rows(), .cols = weight.cols()}};
}

}  // namespace juno::ops
