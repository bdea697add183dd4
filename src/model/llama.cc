// SPDX-License-Identifier: Apache-2.0
// Llama: pre-norm, rotary attention, gated MLP or a mixture of experts. Also Mistral, Mixtral, TinyLlama,
// SmolLM.
#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

struct Layer {
  ops::Norm attn_norm, mlp_norm;
  ops::Linear q, k, v, o;
  Mlp mlp;
};

class Llama final : public Architecture {
 public:
  explicit Llama(Loader& in)
      : ends_(load_ends(in)),
        rope_(make_rope(in, RopeLayout::kInterleaved)),
        heads_(plain_attention(in.config())) {
    const Config& c = in.config();
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
                         .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
                         .q = in.linear("blk.{}.attn_q", i, c.q_shape(), Split::kOut),
                         .k = in.linear("blk.{}.attn_k", i, c.k_shape(), Split::kOut),
                         .v = in.linear("blk.{}.attn_v", i, c.v_shape(), Split::kOut),
                         .o = in.linear("blk.{}.attn_output", i, c.o_shape(), Split::kIn),
                         .mlp = load_mlp(in, i)});
    }
  }

  Tensor embed(Ops& op, const Batch& b) const override { return op.embed(ends_.table, b.tokens); }

  Tensor layer(Ops& op, const Batch& b, int i, Tensor x) const override {
    const Layer& l = layers_[i];

    Tensor h = op.norm(x, l.attn_norm);
    auto [q, k, v] = op.linears(h, l.q, l.k, l.v);
    q = op.rope(q, rope_);  // [tokens, heads*key_dim]
    k = op.rope(k, rope_);  // [tokens, kv_heads*key_dim]
    x = op.add_linear(x, op.attention(q, k, v, heads_, b.kv(i)), l.o);

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
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_llama(Loader& in) { return std::make_unique<Llama>(in); }

}  // namespace juno::model
