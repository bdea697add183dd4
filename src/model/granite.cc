// SPDX-License-Identifier: Apache-2.0
// Granite, dense and mixture: the llama form with four multipliers, and with no rotary embedding where the
// file says so.
#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

struct Layer {
  ops::Norm attn_norm, mlp_norm;
  Projections attn;
  Mlp mlp;
};

class Granite final : public Architecture {
 public:
  explicit Granite(Loader& in)
      : ends_(load_ends(in)),
        rope_(make_rope(in, RopeLayout::kInterleaved)),
        heads_(plain_attention(in.config())),
        embedding_scale_(float(in.keys().positive("embedding_scale"))),
        residual_scale_(float(in.keys().positive("residual_scale"))),
        logit_scale_(float(1 / in.keys().positive("logit_scale"))) {
    const Config& c = in.config();
    heads_.scale = in.keys().positive("attention.scale");
    if (!in.keys().flag("rope.scaling.finetuned", true)) rope_.freq.clear();
    in.keys().refuse("expert_shared_feed_forward_length",
                     "asks for a shared expert, which is not known here");
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
                         .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
                         .attn = load_projections(in, i),
                         .mlp = load_mlp(in, i)});
    }
  }

  Tensor embed(Ops& op, const Batch& b) const override {
    return op.scale(op.embed(ends_.table, b.tokens), embedding_scale_);
  }

  Tensor layer(Ops& op, const Batch& b, int i, Tensor x) const override {
    const Layer& l = layers_[i];

    Tensor h = op.norm(x, l.attn_norm);
    auto [q, k, v] = op.linears(h, l.attn.q, l.attn.k, l.attn.v);
    q = op.rope(q, rope_);  // [tokens, heads*key_dim]
    k = op.rope(k, rope_);  // [tokens, kv_heads*key_dim]
    h = op.linear(op.attention(q, k, v, heads_, b.kv(i)), l.attn.o);
    x = op.add(x, op.scale(h, residual_scale_));

    h = op.norm(x, l.mlp_norm);
    return op.add(x, op.scale(mlp(op, h, l.mlp), residual_scale_));
  }

  Tensor hidden(Ops& op, const Batch& b, Tensor x) const override {
    return op.norm(op.rows(x, b.outputs), ends_.norm);
  }

  Tensor logits(Ops& op, Tensor h) const override { return op.scale(op.linear(h, ends_.head), logit_scale_); }

 private:
  Ends ends_;
  ops::Rope rope_;
  ops::Attention heads_;
  float embedding_scale_, residual_scale_, logit_scale_;  // all of them multiply
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_granite(Loader& in) { return std::make_unique<Granite>(in); }

}  // namespace juno::model
