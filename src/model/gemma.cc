// SPDX-License-Identifier: Apache-2.0
// Gemma: the llama form; embeddings are scaled by sqrt(dim), the MLP uses GELU. The file stores norm weights
// as 1 + w.
#include <cmath>

#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

struct Layer {
  ops::Norm attn_norm, mlp_norm;
  Projections attn;
  Mlp mlp;
};

class Gemma final : public Architecture {
 public:
  explicit Gemma(Loader& in)
      : ends_(load_ends(in)),
        rope_(make_rope(in, RopeLayout::kHalves)),
        heads_(plain_attention(in.config())),
        dim_(in.config().dim) {
    const Config& c = in.config();
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
                         .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
                         .attn = load_projections(in, i),
                         .mlp = load_mlp(in, i, ops::Act::kGeluTanh)});
    }
  }

  Tensor embed(Ops& op, const Batch& b) const override {
    return op.scale(op.embed(ends_.table, b.tokens), float(std::sqrt(double(dim_))));
  }

  Tensor layer(Ops& op, const Batch& b, int i, Tensor x) const override {
    const Layer& l = layers_[i];

    Tensor h = op.norm(x, l.attn_norm);
    auto [q, k, v] = op.linears(h, l.attn.q, l.attn.k, l.attn.v);
    q = op.rope(q, rope_);  // [tokens, heads*key_dim]
    k = op.rope(k, rope_);  // [tokens, kv_heads*key_dim]
    x = op.add_linear(x, op.attention(q, k, v, heads_, b.kv(i)), l.attn.o);

    h = op.norm(x, l.mlp_norm);
    return add_mlp(op, x, h, l.mlp);
  }

  Tensor hidden(Ops& op, const Batch& b, Tensor x) const override {
    return op.norm(op.rows(x, b.outputs), ends_.norm);
  }

  Tensor logits(Ops& op, Tensor h) const override { return op.linear(h, ends_.head); }

 private:
  Ends ends_;
  ops::Rope rope_;
  ops::Attention heads_;
  int dim_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_gemma(Loader& in) { return std::make_unique<Gemma>(in); }

}  // namespace juno::model
