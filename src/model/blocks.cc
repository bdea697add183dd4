// SPDX-License-Identifier: Apache-2.0
#include "model/blocks.h"

#include <cmath>

namespace juno::model {

Ends load_ends(Loader& in) {
  Ends ends;
  ends.table = in.embedding();
  ends.norm = in.norm("output_norm", -1, in.config().dim);
  ends.head = in.head(ends.table);
  return ends;
}

Tensor PlainEnds::embed(Ops& op, const Batch& b) const { return op.embed(ends_.table, b.tokens); }

Tensor PlainEnds::hidden(Ops& op, const Batch& b, Tensor x) const {
  return op.norm(op.rows(x, b.outputs), ends_.norm);
}

Tensor PlainEnds::logits(Ops& op, Tensor h) const { return op.linear(h, ends_.head); }

Projections load_projections(Loader& in, int layer, Bias qkv_bias) {
  const Config& c = in.config();
  return {.q = in.linear("blk.{}.attn_q", layer, c.q_shape(), Split::kOut, qkv_bias),
          .k = in.linear("blk.{}.attn_k", layer, c.k_shape(), Split::kOut, qkv_bias),
          .v = in.linear("blk.{}.attn_v", layer, c.v_shape(), Split::kOut, qkv_bias),
          .o = in.linear("blk.{}.attn_output", layer, c.o_shape(), Split::kIn)};
}

ops::Attention plain_attention(const Config& config) {
  return {.key_dim = config.key_dim,
          .value_dim = config.value_dim,
          .scale = 1 / std::sqrt(double(config.key_dim))};
}

std::vector<ops::Attention> windowed_layers(Loader& in, const ops::Attention& heads, int period) {
  const int layers = in.config().layers;
  const int window = int(in.keys().integer("attention.sliding_window", {1, INT32_MAX}));
  const std::vector<bool> has_window = in.keys().layers("attention.sliding_window_pattern", layers, period);
  std::vector<ops::Attention> all(layers, heads);
  for (int i = 0; i < layers; ++i) all[i].window = has_window[i] ? window : 0;
  return all;
}

Mlp load_mlp(Loader& in, int layer, ops::Act act) {
  const Config& c = in.config();
  if (c.experts == 0 && in.has("blk.{}.ffn_gate_inp", layer)) in.keys().fault("expert_count", "is missing");
  if (c.experts > 0) {
    return {
        .act = act,
        .router = in.linear("blk.{}.ffn_gate_inp", layer, {.rows = c.experts, .cols = c.dim}, Split::kNone),
        .how = {.top_k = c.experts_used},
        .experts = in.experts(layer, act)};
  }
  return {.gate = in.linear("blk.{}.ffn_gate", layer, {.rows = c.ffn, .cols = c.dim}, Split::kOut),
          .up = in.linear("blk.{}.ffn_up", layer, {.rows = c.ffn, .cols = c.dim}, Split::kOut),
          .down = in.linear("blk.{}.ffn_down", layer, {.rows = c.dim, .cols = c.ffn}, Split::kIn),
          .act = act};
}

Mlp load_fused_mlp(Loader& in, int layer) {
  const Config& c = in.config();
  const int64_t ffn = c.ffn;
  return {.gate = in.linear("blk.{}.ffn_up", layer, Part{0, ffn, 2 * ffn}, c.dim, Split::kOut),
          .up = in.linear("blk.{}.ffn_up", layer, Part{ffn, ffn, 2 * ffn}, c.dim, Split::kOut),
          .down = in.linear("blk.{}.ffn_down", layer, {.rows = c.dim, .cols = ffn}, Split::kIn)};
}

Tensor mlp(Ops& op, const Tensor& x, const Mlp& w) {
  if (w.router.weight) return op.experts(x, w.experts, op.route(op.linear(x, w.router), w.how));
  return op.linear(op.gated_linear(w.act, x, w.gate, w.up), w.down);
}

Tensor add_mlp(Ops& op, const Tensor& x, const Tensor& h, const Mlp& w) {
  if (w.router.weight) return op.add(x, mlp(op, h, w));
  return op.add_linear(x, op.gated_linear(w.act, h, w.gate, w.up), w.down);
}

}  // namespace juno::model
