// SPDX-License-Identifier: Apache-2.0
// The numbers that every architecture has, read from a GGUF file and checked: what its code may rely on.
// What only some have (windows, soft-caps, multipliers) their own files ask of Keys.
#pragma once
#include <string>

#include "base/log.h"
#include "model/keys.h"
#include "ops/batch.h"

namespace juno::gguf {
class Reader;
}

namespace juno::model {

// rope.scaling.* keys; what they do is in rope.h.
struct RopeScaling {
  std::string type;  // "", "none", "linear", "yarn", "longrope"
  double factor = 1;
  int64_t original_context = 0;  // 0: not given
  double attention_factor = 0;   // 0: not given
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
  int rope_dims = 0;  // leading elements of a head that rotate
  double rope_base = 10000;
  RopeScaling rope_scaling;
  int experts = 0, experts_used = 0, expert_ffn = 0;  // 0 experts: none

  // What a layer keeps of a position.
  ops::KvShape kv_shape() const { return {kv_heads, key_dim, value_dim}; }
  // Shapes of the attention projections, [out, in].
  Shape q_shape() const { return {.rows = int64_t{heads} * key_dim, .cols = dim}; }
  Shape k_shape() const { return {.rows = int64_t{kv_heads} * key_dim, .cols = dim}; }
  Shape v_shape() const { return {.rows = int64_t{kv_heads} * value_dim, .cols = dim}; }
  Shape o_shape() const { return {.rows = dim, .cols = int64_t{heads} * value_dim}; }
};

// general.architecture of a file that is a model; an error when it is something else (an adapter, a
// projector).
std::string read_architecture(const gguf::Reader& file);

// Reads the keys that all architectures share. Every number is checked against its range, what it divides and
// what it multiplies; everything missing or wrong is named in one error. context: as in load_model.
Config read_config(const gguf::Reader& file, Keys& keys, int64_t context, const Log& log);

}  // namespace juno::model
