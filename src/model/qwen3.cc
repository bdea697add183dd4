// SPDX-License-Identifier: Apache-2.0
// Qwen 3, dense and mixture: the llama form, with a norm on each head of q and k before the rotary embedding.
#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

struct Layer {
  ops::Norm attn_norm, q_norm, k_norm, mlp_norm;
  Projections attn;
  Mlp mlp;
};

class Qwen3 final : public PlainEnds {
 public:
  explicit Qwen3(Loader& in)
      : PlainEnds(in), rope_(make_rope(in, RopeLayout::kHalves)), heads_(plain_attention(in.config())) {
    const Config& c = in.config();
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
                         .q_norm = in.norm("blk.{}.attn_q_norm", i, c.key_dim),
                         .k_norm = in.norm("blk.{}.attn_k_norm", i, c.key_dim),
                         .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
                         .attn = load_projections(in, i),
                         .mlp = load_mlp(in, i)});
    }
  }

  Tensor layer(Ops& op, const Batch& b, int i, Tensor x) const override {
    const Layer& l = layers_[i];

    Tensor h = op.norm(x, l.attn_norm);
    auto [q, k, v] = op.linears(h, l.attn.q, l.attn.k, l.attn.v);
    q = op.rope(op.norm(q, l.q_norm), rope_);  // [tokens, heads*key_dim]
    k = op.rope(op.norm(k, l.k_norm), rope_);  // [tokens, kv_heads*key_dim]
    x = op.add_linear(x, op.attention(q, k, v, heads_, b.kv(i)), l.attn.o);

    h = op.norm(x, l.mlp_norm);
    return add_mlp(op, x, h, l.mlp);
  }

 private:
  ops::Rope rope_;
  ops::Attention heads_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_qwen3(Loader& in) { return std::make_unique<Qwen3>(in); }

}  // namespace juno::model
