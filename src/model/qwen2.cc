// SPDX-License-Identifier: Apache-2.0
// Qwen 2 and 2.5: the llama form, with biases on q, k and v.
#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

struct Layer {
  ops::Norm attn_norm, mlp_norm;
  Projections attn;
  Mlp mlp;
};

class Qwen2 final : public PlainEnds {
 public:
  explicit Qwen2(Loader& in)
      : PlainEnds(in), rope_(make_rope(in, RopeLayout::kHalves)), heads_(plain_attention(in.config())) {
    const Config& c = in.config();
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
                         .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
                         .attn = load_projections(in, i, Bias::kRequired),
                         .mlp = load_mlp(in, i)});
    }
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

 private:
  ops::Rope rope_;
  ops::Attention heads_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_qwen2(Loader& in) { return std::make_unique<Qwen2>(in); }

}  // namespace juno::model
