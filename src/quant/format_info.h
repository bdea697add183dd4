// SPDX-License-Identifier: Apache-2.0
// The list of formats at run time, for code that meets a format's number in a file.
#pragma once
#include <cstdint>
#include <span>

#include "quant/activation.h"

namespace juno::quant {

struct FormatInfo {
  const char* name;
  uint32_t gguf_id;
  int block_elements;
  int block_bytes;
  bool is_float;  // activations stay f32 (numerics contract, §4), and FormatInfo::dot reads ActivationRow::x
  bool has_min;   // the dot product also reads ActivationRow::h

  // n elements, a multiple of block_elements. Pointers to blocks are aligned as the block's own members need.
  void (*dequantise_row)(const void* w, int64_t n, float* y);
  void (*quantise_row)(const float* x, int64_t n, void* w);  // null: the format can only be read
  // The defined product of two rows of x.k elements: groups begin … end - 1 of eight (dot.h).
  float (*dot_groups)(const void* w, const ActivationRow& x, int begin, int end);

  int64_t row_bytes(int64_t n) const { return n / block_elements * block_bytes; }
  // Elements of an activation block in a row of k.
  int activation_block(int64_t k) const { return quant::activation_block(block_elements, k); }
};

// In the order of formats.h.
std::span<const FormatInfo> formats();

// Null when the number is unknown.
const FormatInfo* find_format(uint32_t gguf_id);

}  // namespace juno::quant
