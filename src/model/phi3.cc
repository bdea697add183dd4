// SPDX-License-Identifier: Apache-2.0
// Phi-3, 3.5 and Phi-4-mini: the llama form, q, k, v in one matrix, gate and up in another. LongRoPE where
// the file has its factors. The sliding window, if any, is in every layer.
#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

struct Layer {
  ops::Norm attn_norm, mlp_norm;
  Projections attn;
  Mlp mlp;
};

// attn_qkv holds the rows of q, then k, then v.
Projections load_fused(Loader& in, int layer) {
  const Config& c = in.config();
  const int64_t q = c.q_shape().rows, k = c.k_shape().rows, v = c.v_shape().rows, all = q + k + v;
  return {.q = in.linear("blk.{}.attn_qkv", layer, Part{0, q, all}, c.dim, Split::kOut),
          .k = in.linear("blk.{}.attn_qkv", layer, Part{q, k, all}, c.dim, Split::kOut),
          .v = in.linear("blk.{}.attn_qkv", layer, Part{q + k, v, all}, c.dim, Split::kOut),
          .o = in.linear("blk.{}.attn_output", layer, c.o_shape(), Split::kIn)};
}

class Phi3 final : public PlainEnds {
 public:
  explicit Phi3(Loader& in)
      : PlainEnds(in), rope_(make_rope(in, RopeLayout::kHalves)), heads_(plain_attention(in.config())) {
    const Config& c = in.config();
    heads_.window = int(in.keys().integer("attention.sliding_window", {0, INT32_MAX}, 0));
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
                         .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
                         .attn = load_fused(in, i),
                         .mlp = load_fused_mlp(in, i)});
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

std::unique_ptr<Architecture> make_phi3(Loader& in) { return std::make_unique<Phi3>(in); }

}  // namespace juno::model
