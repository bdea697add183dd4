// SPDX-License-Identifier: Apache-2.0
// The numbers that a GGUF file gives of a model, checked: what an architecture may rely on.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "ops/batch.h"

namespace juno::gguf {
class Metadata;
}

namespace juno::model {

// rope.* keys; names as in docs/add-a-model.md.
struct RopeScaling {
  std::string type;             // "", "none", "linear", "yarn", "longrope"
  double factor = 1;
  double original_context = 0;  // 0: not given
  double attention_factor = 0;  // 0: not given
  double beta_fast = 32, beta_slow = 1;
};

struct Config {
  std::string architecture;
  int layers = 0, dim = 0, ffn = 0, heads = 0, kv_heads = 0;
  int key_dim = 0, value_dim = 0;  // of one head
  int64_t vocab = 0;               // rows of the embedding
  int64_t trained_context = 0;     // context_length
  int64_t context = 0;             // the context this engine is opened with
  float norm_eps = 0;
  int rope_dims = 0;               // leading elements of a head that rotate
  double rope_base = 10000;
  RopeScaling rope_scaling;
  int window = 0;                  // attention.sliding_window; 0: none
  double attention_softcap = 0, logit_softcap = 0;
  int experts = 0, experts_used = 0, expert_ffn = 0;

  // What a layer keeps of a position.
  ops::KvShape kv_shape() const { return {kv_heads, key_dim, value_dim}; }
  // Shapes of the attention projections, [out, in].
  Shape q_shape() const { return {.rows = int64_t{heads} * key_dim, .cols = dim}; }
  Shape k_shape() const { return {.rows = int64_t{kv_heads} * key_dim, .cols = dim}; }
  Shape v_shape() const { return {.rows = int64_t{kv_heads} * value_dim, .cols = dim}; }
  Shape o_shape() const { return {.rows = dim, .cols = int64_t{heads} * value_dim}; }
};

// Reads the keys "<arch>.…" that all architectures share. Every missing required key is named in one error, and
// every number is checked against what it divides and multiplies.
Config read_config(const gguf::Metadata& metadata, int64_t context, const Log& log);

}  // namespace juno::model
