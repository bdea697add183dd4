// SPDX-License-Identifier: Apache-2.0
// What all backends share of Ops: the shape of each result, its place in the arena, the count of what ran. A backend
// derives from it and fills in the do_… kernels, which write into outputs that exist already.
#pragma once
#include "base/arena.h"
#include "base/recorder.h"
#include "ops/ops.h"

namespace juno::ops {

enum class Activations : uint8_t { kInt8, kInt8x2 };  // profiles of docs/numerics.md §2

class Executor : public Ops {
 public:
  // The most a forward of this many tokens and outputs can need; the forward then allocates nothing.
  // plan() runs `forward` once with kernels switched off and reserves what it asked for.
  Recorder& recorder() { return recorder_; }

  void begin(const Batch& batch) override;
  Tensor end_layer(int layer, const Tensor& x) override;
  Tensor embed(const Tensor& table, const Tensor& tokens) override;
  Tensor linear(const Tensor& x, const Linear& w) override;
  // … every verb
};

}  // namespace juno::ops
