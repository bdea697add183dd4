// SPDX-License-Identifier: Apache-2.0
// SmolLM 3: the llama form; every fourth layer has no rotary embedding.
#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

constexpr int kNoRopePeriod = 4;  // not in the file

struct Layer {
  ops::Norm attn_norm, mlp_norm;
  Projections attn;
  Mlp mlp;
};

class SmolLm3 final : public PlainEnds {
 public:
  explicit SmolLm3(Loader& in)
      : PlainEnds(in), rope_(make_rope(in, RopeLayout::kInterleaved)), heads_(plain_attention(in.config())) {
    const Config& c = in.config();
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.attn_norm = in.norm("blk.{}.attn_norm", i, c.dim),
                         .mlp_norm = in.norm("blk.{}.ffn_norm", i, c.dim),
                         .attn = load_projections(in, i),
                         .mlp = load_mlp(in, i)});
    }
  }

  Tensor layer(Ops& op, const Batch& b, int i, Tensor x) const override {
    const Layer& l = layers_[i];

    Tensor h = op.norm(x, l.attn_norm);
    auto [q, k, v] = op.linears(h, l.attn.q, l.attn.k, l.attn.v);
    if ((i + 1) % kNoRopePeriod != 0) {
      q = op.rope(q, rope_);  // [tokens, heads*key_dim]
      k = op.rope(k, rope_);  // [tokens, kv_heads*key_dim]
    }
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

std::unique_ptr<Architecture> make_smollm3(Loader& in) { return std::make_unique<SmolLm3>(in); }

}  // namespace juno::model
