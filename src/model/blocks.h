// SPDX-License-Identifier: Apache-2.0
// Pieces that several architectures share: their weights and the few lines that apply them.
#pragma once
#include "model/architecture.h"
#include "model/loader.h"

namespace juno::model {

using ops::Split;

// Token embedding, final norm and output head (the embedding itself where the file ties them).
struct Ends {
  Tensor table;  // [vocab, dim]
  ops::Norm norm;
  ops::Linear head;
};
Ends load_ends(Loader& in);

// An architecture that begins and ends as most do, so that its page holds its layers only: the embedding's
// rows, and norm and head of the rows that are wanted. src/model/llama.cc spells both out.
class PlainEnds : public Architecture {
 public:
  explicit PlainEnds(Loader& in) : ends_(load_ends(in)) {}
  Tensor embed(Ops& op, const Batch& b) const override;
  Tensor hidden(Ops& op, const Batch& b, Tensor x) const override;
  Tensor logits(Ops& op, Tensor h) const override;

 private:
  Ends ends_;
};

// The four matrices around attention.
struct Projections {
  ops::Linear q, k, v, o;
};
Projections load_projections(Loader& in, int layer, Bias qkv_bias = Bias::kOptional);

// Attention over whole heads with scale key_dim^-1/2, every position seen.
ops::Attention plain_attention(const Config& config);

// The attention of each layer where some see only attention.sliding_window positions: those that the file's
// attention.sliding_window_pattern names, else all but the last of each period.
std::vector<ops::Attention> windowed_layers(Loader& in, const ops::Attention& heads, int period);

// The feed-forward part of a layer: dense, or a mixture of experts where the file has a router.
struct Mlp {
  ops::Linear gate, up, down;
  ops::Act act = ops::Act::kSilu;
  // Mixture: only these are filled.
  ops::Linear router;
  ops::Router how;
  ops::Experts experts;
};
Mlp load_mlp(Loader& in, int layer, ops::Act act = ops::Act::kSilu);
Mlp load_fused_mlp(Loader& in, int layer);           // dense, where ffn_up holds the rows of gate, then up
Tensor mlp(Ops& op, const Tensor& x, const Mlp& w);  // [tokens, dim] -> [tokens, dim], the residual not added
Tensor add_mlp(Ops& op, const Tensor& x, const Tensor& h, const Mlp& w);  // x + mlp(h)

}  // namespace juno::model
