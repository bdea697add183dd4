// SPDX-License-Identifier: Apache-2.0
// What one forward pass works on: the tokens of several sequences, and the pages that hold their keys and
// values.
#pragma once
#include <span>

#include "tensor/tensor.h"

namespace juno::ops {

// Positions in a page of the KV cache; also the chunk of attention (docs/numerics.md §6).
inline constexpr int kPagePositions = 64;

// What one layer keeps of a position.
struct KvShape {
  int kv_heads = 0, key_dim = 0, value_dim = 0;
};

// One layer's pages, f16: keys [pages, kv_heads*64, key_dim], values [pages, kv_heads*64, value_dim].
// Row h*64 + s of a page is slot s of head h, so that a head's chunk is contiguous.
struct KvLayer {
  Tensor keys, values;
};

// Consecutive positions of one sequence, in consecutive rows of the batch. Page p of `pages` holds the
// positions [64p, 64p+64) of that sequence, in every layer.
struct Run {
  int32_t first_row = 0, rows = 0;
  int32_t position = 0;  // of the first row
  std::span<const int32_t> pages;
};

struct KvView {
  KvLayer layer;
  std::span<const Run> runs;
};

// One of a row's greatest logits.
struct TopLogit {
  float logit = 0;
  int32_t id = -1;
};

struct Batch {
  Tensor tokens;            // [1, tokens] i32
  Tensor positions;         // [1, tokens] i32
  Tensor outputs;           // [1, n] i32: the rows whose logits are wanted
  bool all_wanted = false;  // `outputs` are all rows, in their order
  bool hidden = false;      // not their logits, but what the head makes them from
  // Of each of `outputs` how many of the greatest of its first `vocab` logits Executor::top_logits() is to
  // have; on the host, empty: none of any.
  std::span<const int32_t> top;
  int64_t vocab = 0;
  std::span<const Run> runs;
  std::span<const KvLayer> layers;

  KvView kv(int layer) const { return {layers[layer], runs}; }
};

}  // namespace juno::ops
