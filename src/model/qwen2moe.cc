// SPDX-License-Identifier: Apache-2.0
// Qwen 1.5 and 2 MoE: Qwen 2 with a mixture whose weights are left as the softmax gives them, beside an
// expert that every token takes, as much of it as a sigmoid of its own says.
#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

// Of one expert, the sigmoid of its logit.
constexpr ops::Router kGate{.top_k = 1, .sigmoid = true, .normalise = false};

struct Layer {
  ops::Norm attn_norm, mlp_norm;
  Projections attn;
  Mlp mixture;
  ops::Linear shared_gate;  // [1, dim]
  ops::Experts shared;      // a mixture of one
};

Mlp load_mixture(Loader& in, int layer) {
  Mlp mixture = load_mlp(in, layer);
  mixture.how.normalise = false;
  return mixture;
}

ops::Experts load_shared(Loader& in, int layer) {
  const Config& c = in.config();
  const int64_t ffn = in.keys().integer("expert_shared_feed_forward_length", {1, INT32_MAX}, c.ffn);
  return {.gate = in.matrix("blk.{}.ffn_gate_shexp", layer, {.rows = ffn, .cols = c.dim}),
          .up = in.matrix("blk.{}.ffn_up_shexp", layer, {.rows = ffn, .cols = c.dim}),
          .down = in.matrix("blk.{}.ffn_down_shexp", layer, {.rows = c.dim, .cols = ffn})};
}

class Qwen2Moe final : public PlainEnds {
 public:
  explicit Qwen2Moe(Loader& in)
      : PlainEnds(in), rope_(make_rope(in, RopeLayout::kHalves)), heads_(plain_attention(in.config())) {
    const Config& c = in.config();
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back(
          {.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
           .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
           .attn = load_projections(in, i, Bias::kRequired),
           .mixture = load_mixture(in, i),
           .shared_gate = in.linear("blk.{}.ffn_gate_inp_shexp", i, {.rows = 1, .cols = c.dim}, Split::kNone),
           .shared = load_shared(in, i)});
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
    Tensor shared = op.experts(h, l.shared, op.route(op.linear(h, l.shared_gate), kGate));  // [tokens, dim]
    return op.add(x, op.add(mlp(op, h, l.mixture), shared));
  }

 private:
  ops::Rope rope_;
  ops::Attention heads_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_qwen2moe(Loader& in) { return std::make_unique<Qwen2Moe>(in); }

}  // namespace juno::model
