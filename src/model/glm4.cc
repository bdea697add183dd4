// SPDX-License-Identifier: Apache-2.0
// GLM-4 (0414): the llama form, with a norm after each branch too, and gate and up in one matrix. Half of
// each head rotates; only some sizes have biases on q, k and v.
#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

struct Layer {
  ops::Norm attn_norm, post_attn_norm, mlp_norm, post_mlp_norm;
  Projections attn;
  Mlp mlp;
};

class Glm4 final : public PlainEnds {
 public:
  explicit Glm4(Loader& in)
      : PlainEnds(in), rope_(make_rope(in, RopeLayout::kInterleaved)), heads_(plain_attention(in.config())) {
    const Config& c = in.config();
    in.keys().refuse("rope.dimension_sections",
                     "asks for the rotary layout of GLM-4V, which is not known here");
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
                         .post_attn_norm = in.norm("blk.{}.post_attention_norm", i, c.dim),
                         .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
                         .post_mlp_norm = in.norm("blk.{}.post_ffw_norm", i, c.dim),
                         .attn = load_projections(in, i),
                         .mlp = load_fused_mlp(in, i)});
    }
  }

  Tensor layer(Ops& op, const Batch& b, int i, Tensor x) const override {
    const Layer& l = layers_[i];

    Tensor h = op.norm(x, l.attn_norm);
    auto [q, k, v] = op.linears(h, l.attn.q, l.attn.k, l.attn.v);
    q = op.rope(q, rope_);                                            // [tokens, heads*key_dim]
    k = op.rope(k, rope_);                                            // [tokens, kv_heads*key_dim]
    h = op.linear(op.attention(q, k, v, heads_, b.kv(i)), l.attn.o);  // [tokens, dim]
    x = op.add(x, op.norm(h, l.post_attn_norm));

    h = op.norm(x, l.mlp_norm);
    return op.add(x, op.norm(mlp(op, h, l.mlp), l.post_mlp_norm));
  }

 private:
  ops::Rope rope_;
  ops::Attention heads_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_glm4(Loader& in) { return std::make_unique<Glm4>(in); }

}  // namespace juno::model
