// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <algorithm>
#include <array>

#include "gguf/reader.h"
#include "gguf/text.h"

namespace juno::model {
namespace {

// Far above any model, low enough that no product of two of them overflows an int64_t.
constexpr int64_t kMostWidth = 1 << 24, kMostHeads = 1 << 16, kMostPositions = INT32_MAX;

void read_attention(Config& c, Keys& keys) {
  c.heads = keys.integer("attention.head_count", {1, kMostHeads});
  c.kv_heads = keys.integer("attention.head_count_kv", {1, kMostHeads}, c.heads);
  if (c.heads % c.kv_heads != 0) {
    keys.fault("attention.head_count_kv",
               fmt::format("is {}, which does not divide the {} heads of {}", c.kv_heads, c.heads,
                           keys.full("attention.head_count")));
  }
  const int64_t split = c.dim / c.heads;  // a head's size where none is given
  c.key_dim = keys.integer("attention.key_length", {1, kMostHeads}, split);
  c.value_dim = keys.integer("attention.value_length", {1, kMostHeads}, split);
  if ((c.key_dim == split || c.value_dim == split) && c.dim % c.heads != 0) {
    keys.fault("attention.head_count", fmt::format("is {}, which does not divide {} {}", c.heads,
                                                   keys.full("embedding_length"), c.dim));
  }
}

void read_rope(Config& c, Keys& keys) {
  c.rope_dims = keys.integer("rope.dimension_count", {2, kMostHeads}, c.key_dim);
  if (c.rope_dims > c.key_dim || c.rope_dims % 2 != 0) {
    keys.fault("rope.dimension_count",
               fmt::format("is {}, not an even number up to the head's size {}", c.rope_dims, c.key_dim));
  }
  c.rope_base = keys.positive("rope.freq_base", 10000);
  if (c.rope_base < 1) keys.fault("rope.freq_base", fmt::format("is {}, below 1", c.rope_base));

  keys.flag("rope.scaling.finetuned", true);  // a remark, except for granite

  RopeScaling& s = c.rope_scaling;
  s.type = keys.text("rope.scaling.type");
  constexpr std::array<std::string_view, 5> kTypes{"", "none", "linear", "yarn", "longrope"};
  if (std::find(kTypes.begin(), kTypes.end(), s.type) == kTypes.end()) {
    keys.fault("rope.scaling.type",
               fmt::format("is \"{}\"; known are none, linear, yarn and longrope", gguf::shown(s.type)));
  }
  const bool yarn = s.type == "yarn";
  const Range positions{1, kMostPositions};
  s.factor = yarn || s.type == "linear" ? keys.positive("rope.scaling.factor")
                                        : keys.positive("rope.scaling.factor", 1);
  s.original_context = yarn ? keys.integer("rope.scaling.original_context_length", positions)
                            : keys.integer("rope.scaling.original_context_length", positions, 0);
  s.attention_factor = keys.positive(yarn ? "rope.scaling.yarn_attn_factor" : "rope.scaling.attn_factor", 0);
  if (yarn) {
    s.beta_fast = keys.positive("rope.scaling.yarn_beta_fast", 32);
    s.beta_slow = keys.positive("rope.scaling.yarn_beta_slow", 1);
  }
}

void read_experts(Config& c, Keys& keys) {
  c.experts = keys.integer("expert_count", {0, kMostHeads}, 0);
  if (c.experts == 0) {
    if (keys.integer("expert_used_count", {0, kMostHeads}, 0) > 0) {
      keys.fault("expert_count", fmt::format("is missing, but {} is there", keys.full("expert_used_count")));
    }
    return;
  }
  c.experts_used = keys.integer("expert_used_count", {1, c.experts});
  c.expert_ffn = keys.integer("expert_feed_forward_length", {1, kMostWidth}, c.ffn);
}

void read_vocab(Config& c, const gguf::Reader& file, Keys& keys) {
  const gguf::TensorInfo* embedding = file.tensor("token_embd.weight");
  if (!embedding) return;  // the loader names it
  if (embedding->dims[1] > uint64_t{INT32_MAX}) {
    fail(Code::kBadData, "[model] {}: token_embd.weight has {} rows, more than token ids", file.name(),
         embedding->dims[1]);
  }
  c.vocab = int64_t(embedding->dims[1]);
  const int64_t stated = keys.integer("vocab_size", {1, INT32_MAX}, c.vocab);
  if (stated != c.vocab) {
    keys.fault("vocab_size", fmt::format("is {}, but token_embd.weight has {} rows", stated, c.vocab));
  }
}

void read_context(Config& c, Keys& keys, int64_t context, const Log& log) {
  c.trained_context = keys.integer("context_length", {1, kMostPositions});
  if (context < 0 || context > kMostPositions) {
    fail(Code::kUsage, "[model] a context of {} positions was asked for, not from 1 to {}", context,
         kMostPositions);
  }
  c.context = context ? context : c.trained_context;
  if (c.context > c.trained_context) {
    log.warn("[model] the context of {} positions is longer than the {} that the model was trained on ({})",
             c.context, c.trained_context, keys.full("context_length"));
  }
}

}  // namespace

std::string read_architecture(const gguf::Reader& file) {
  const gguf::Metadata& metadata = file.metadata();
  for (std::string_view other : {"adapter", "mmproj", "imatrix"}) {
    const gguf::Value* type = metadata.find("general.type");
    if (type && type->as<std::string_view>() == other) {
      fail(Code::kBadData, "[model] {}: general.type is \"{}\": the file is not a model", file.name(), other);
    }
  }
  const gguf::Value* name = metadata.find("general.architecture");
  if (!name) fail(Code::kBadData, "[model] {}: general.architecture is missing", file.name());
  if (const auto text = name->as<std::string>()) return *text;
  fail(Code::kBadData, "[model] {}: general.architecture is of type {}, not a string", file.name(),
       gguf::name_of(name->type));
}

Config read_config(const gguf::Reader& file, Keys& keys, int64_t context, const Log& log) {
  Config c;
  c.architecture = read_architecture(file);
  if (file.tensors().empty())
    fail(Code::kBadData, "[model] {} holds no tensor: it is not a model", file.name());
  // A layer has a tensor at least: no file makes us count to two thousand million.
  c.layers = keys.integer("block_count", {1, std::min<int64_t>(file.tensors().size(), kMostHeads)});
  c.dim = keys.integer("embedding_length", {1, kMostWidth});
  c.ffn = keys.integer("feed_forward_length", {1, kMostWidth});
  c.norm_eps = float(keys.positive("attention.layer_norm_rms_epsilon"));
  read_attention(c, keys);
  read_rope(c, keys);
  read_experts(c, keys);
  read_vocab(c, file, keys);
  read_context(c, keys, context, log);
  return c;
}

}  // namespace juno::model
