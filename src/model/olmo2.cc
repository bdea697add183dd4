// SPDX-License-Identifier: Apache-2.0
// OLMo 2 and 3: no norm before a branch, one after it; q and k are normalised over all heads together. OLMo 3
// has a sliding window in three layers of four, and scales the rotary embedding of the fourth only.
#include <algorithm>

#include "model/blocks.h"
#include "model/rope.h"

namespace juno::model {
namespace {

constexpr int kPeriod = 4;  // layers; the last of each period has no window

struct Layer {
  ops::Norm q_norm, k_norm, post_attn_norm, post_mlp_norm;
  Projections attn;
  Mlp mlp;
  ops::Attention heads;
};

// OLMo 2 has no key about windows; with one of OLMo 3's, the other must be there.
std::vector<ops::Attention> attention_of_layers(Loader& in) {
  const int layers = in.config().layers;
  const ops::Attention heads = plain_attention(in.config());
  const bool size = in.keys().integer("attention.sliding_window", {0, INT32_MAX}, 0) > 0;
  const std::vector<bool> named = in.keys().layers("attention.sliding_window_pattern", layers, 1);
  if (size || std::ranges::count(named, true)) return windowed_layers(in, heads, kPeriod);
  return std::vector<ops::Attention>(layers, heads);
}

class Olmo2 final : public PlainEnds {
 public:
  explicit Olmo2(Loader& in)
      : PlainEnds(in),
        global_rope_(make_rope(in, RopeLayout::kHalves)),
        window_rope_(plain_rope(in.config(), in.keys().positive("rope.freq_base_swa", in.config().rope_base),
                                RopeLayout::kHalves)) {
    const Config& c = in.config();
    const std::vector<ops::Attention> heads = attention_of_layers(in);
    for (int i = 0; i < c.layers; ++i) {
      layers_.push_back({.q_norm = in.norm("blk.{}.attn_q_norm", i, c.q_shape().rows),
                         .k_norm = in.norm("blk.{}.attn_k_norm", i, c.k_shape().rows),
                         .post_attn_norm = in.norm("blk.{}.post_attention_norm", i, c.dim),
                         .post_mlp_norm = in.norm("blk.{}.post_ffw_norm", i, c.dim),
                         .attn = load_projections(in, i),
                         .mlp = load_mlp(in, i),
                         .heads = heads[i]});
    }
  }

  Tensor layer(Ops& op, const Batch& b, int i, Tensor x) const override {
    const Layer& l = layers_[i];

    const ops::Rope& rope = l.heads.window ? window_rope_ : global_rope_;

    auto [q, k, v] = op.linears(x, l.attn.q, l.attn.k, l.attn.v);
    q = op.rope(op.norm(q, l.q_norm), rope);                                  // [tokens, heads*key_dim]
    k = op.rope(op.norm(k, l.k_norm), rope);                                  // [tokens, kv_heads*key_dim]
    Tensor h = op.linear(op.attention(q, k, v, l.heads, b.kv(i)), l.attn.o);  // [tokens, dim]
    x = op.add(x, op.norm(h, l.post_attn_norm));

    return op.add(x, op.norm(mlp(op, x, l.mlp), l.post_mlp_norm));
  }

 private:
  ops::Rope global_rope_, window_rope_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_olmo2(Loader& in) { return std::make_unique<Olmo2>(in); }

}  // namespace juno::model
