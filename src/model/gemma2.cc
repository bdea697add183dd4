// SPDX-License-Identifier: Apache-2.0
// Gemma 2: Gemma with a norm after each branch too, soft-caps on scores and logits, and a sliding window in
// every other layer.
#include <cmath>

#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

constexpr int kPeriod = 2;      // layers; the last of each period has no window
constexpr int kLayers27B = 46;  // the 27B scales scores by (dim/heads)^-1/2; the file does not say so

struct Layer {
  ops::Norm attn_norm, post_attn_norm, mlp_norm, post_mlp_norm;
  Projections attn;
  Mlp mlp;
  ops::Attention heads;
};

class Gemma2 final : public Architecture {
 public:
  explicit Gemma2(Loader& in)
      : ends_(load_ends(in)), rope_(make_rope(in, RopeLayout::kHalves)), dim_(in.config().dim) {
    const Config& c = in.config();
    logit_softcap_ = float(in.keys().positive("final_logit_softcapping"));
    ops::Attention heads = plain_attention(c);
    heads.softcap = in.keys().positive("attn_logit_softcapping");
    if (c.layers == kLayers27B) heads.scale = 1 / std::sqrt(double(c.dim) / c.heads);
    const std::vector<ops::Attention> windowed = windowed_layers(in, heads, kPeriod);
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
                         .post_attn_norm = in.norm("blk.{}.post_attention_norm", i, c.dim),
                         .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
                         .post_mlp_norm = in.norm("blk.{}.post_ffw_norm", i, c.dim),
                         .attn = load_projections(in, i),
                         .mlp = load_mlp(in, i, ops::Act::kGeluTanh),
                         .heads = windowed[i]});
    }
  }

  Tensor embed(Ops& op, const Batch& b) const override {
    return op.scale(op.embed(ends_.table, b.tokens), float(std::sqrt(double(dim_))));
  }

  Tensor layer(Ops& op, const Batch& b, int i, Tensor x) const override {
    const Layer& l = layers_[i];

    Tensor h = op.norm(x, l.attn_norm);
    auto [q, k, v] = op.linears(h, l.attn.q, l.attn.k, l.attn.v);
    q = op.rope(q, rope_);                                             // [tokens, heads*key_dim]
    k = op.rope(k, rope_);                                             // [tokens, kv_heads*key_dim]
    h = op.linear(op.attention(q, k, v, l.heads, b.kv(i)), l.attn.o);  // [tokens, dim]
    x = op.add(x, op.norm(h, l.post_attn_norm));

    h = op.norm(x, l.mlp_norm);
    return op.add(x, op.norm(mlp(op, h, l.mlp), l.post_mlp_norm));
  }

  Tensor hidden(Ops& op, const Batch& b, Tensor x) const override {
    return op.norm(op.rows(x, b.outputs), ends_.norm);
  }

  Tensor logits(Ops& op, Tensor h) const override {
    return op.softcap(op.linear(h, ends_.head), logit_softcap_);
  }

 private:
  Ends ends_;
  ops::Rope rope_;
  int dim_;
  float logit_softcap_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_gemma2(Loader& in) { return std::make_unique<Gemma2>(in); }

}  // namespace juno::model
