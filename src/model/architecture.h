// SPDX-License-Identifier: Apache-2.0
// An architecture: its weights and its forward pass, written against Ops alone. How it is conducted (plain,
// over several ranks or stages, in training) is the business of Ops, Loader and Tape.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "ops/ops.h"

namespace juno::model {

using ops::Batch;
using ops::Ops;

class Loader;

class Architecture {
 public:
  virtual ~Architecture() = default;

  virtual Tensor embed(Ops& op, const Batch& b) const = 0;                   // [tokens, dim]
  virtual Tensor layer(Ops& op, const Batch& b, int i, Tensor x) const = 0;  // [tokens, dim]
  virtual Tensor hidden(Ops& op, const Batch& b, Tensor x) const = 0;        // [outputs, dim], normed
  virtual Tensor logits(Ops& op, Tensor h) const = 0;                        // [outputs, vocab]
};

struct Entry {
  std::string_view name;  // general.architecture
  std::unique_ptr<Architecture> (*make)(Loader&);
};

// Every architecture this engine knows (architectures.cc is the list).
std::span<const Entry> architectures();

}  // namespace juno::model
