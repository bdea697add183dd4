// SPDX-License-Identifier: Apache-2.0
// Pieces that several architectures share: their weights and the few lines that apply them.
#pragma once
#include "model/loader.h"

namespace juno::model {

using ops::Split;

// The feed-forward part of a layer: dense, or a mixture of experts where the file has experts.
struct Mlp {
  ops::Linear gate, up, down;
  ops::Act act = ops::Act::kSilu;
  // Mixture: only these are filled.
  ops::Linear router;
  ops::Router how;
  ops::Experts experts;
};
Mlp load_mlp(Loader& in, int layer, ops::Act act = ops::Act::kSilu);
Tensor mlp(Ops& op, const Tensor& x, const Mlp& w);  // [tokens, dim] -> [tokens, dim], the residual not added

// Attention over whole heads with scale key_dim^-1/2.
ops::Attention plain_attention(const Config& config);

// Token embedding, final norm and output head (the embedding itself where the file ties them).
struct Ends {
  Tensor table;  // [vocab, dim]
  ops::Norm norm;
  ops::Linear head;
};
Ends load_ends(Loader& in);

}  // namespace juno::model
