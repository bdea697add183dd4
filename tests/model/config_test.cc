// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "model/support.h"

namespace juno::model::testing {
namespace {

bool contains(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

Config config_of(const std::string& fixture, int64_t context = 0, const Log& log = {}) {
  const std::string bytes = fixture_bytes(fixture);
  return take(check_model(open(bytes), context, log));
}

TEST(Config, HoldsWhatTheFileSays) {
  const Config c = config_of("llama-yarn");
  EXPECT_EQ(c.architecture, "llama");
  EXPECT_EQ(c.layers, 3);
  EXPECT_EQ(c.dim, 64);
  EXPECT_EQ(c.ffn, 128);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.kv_heads, 2);
  EXPECT_EQ(c.key_dim, 32);
  EXPECT_EQ(c.value_dim, 32);
  EXPECT_EQ(c.vocab, 320);
  EXPECT_EQ(c.trained_context, 512);
  EXPECT_EQ(c.context, 512);
  EXPECT_EQ(c.norm_eps, 1e-6f);
  EXPECT_EQ(c.rope_dims, 32);
  EXPECT_EQ(c.rope_scaling.type, "yarn");
  EXPECT_EQ(c.rope_scaling.factor, 4);
  EXPECT_EQ(c.rope_scaling.original_context, 128);
}

TEST(Config, FillsInWhatTheFileLeavesOut) {
  const Config c = config_of("qwen2");  // no key_length, no rope.dimension_count, no vocab_size
  EXPECT_EQ(c.key_dim, 24);
  EXPECT_EQ(c.rope_dims, 24);
  EXPECT_EQ(c.vocab, 320);
  EXPECT_EQ(config_of("gemma2").rope_base, 10000);
  EXPECT_EQ(config_of("mixtral").expert_ffn, 32);
}

TEST(Config, AContextBeyondTheTrainedOneIsWarnedOfOnce) {
  Listener listener;
  EXPECT_EQ(config_of("mistral", 513, listener.log).context, 513);
  EXPECT_EQ(listener.lines, 1);
  EXPECT_TRUE(contains(listener.heard, "513")) << listener.heard;
  EXPECT_TRUE(contains(listener.heard, "llama.context_length")) << listener.heard;

  Listener silent;
  EXPECT_EQ(config_of("mistral", 512, silent.log).context, 512);
  EXPECT_EQ(silent.lines, 0);
}

TEST(Config, AContextThatNoPositionCanCountIsAUsageError) {
  const std::string bytes = fixture_bytes("mistral");
  for (int64_t context : {int64_t{-1}, int64_t{1} << 31}) {
    const auto checked = check_model(open(bytes), context, {});
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::kUsage);
  }
}

TEST(C03, ZerosAndOtherNumbersThatCannotBeAreNamed) {
  const std::string good = fixture_bytes("llama-yarn");
  const auto refuses = [&](const std::string& key, auto value) {
    std::string bytes = good;
    if constexpr (std::is_same_v<decltype(value), float>) set_f32(bytes, "llama." + key, value);
    else set_u32(bytes, "llama." + key, value);
    EXPECT_TRUE(contains(complaint(bytes), "llama." + key))
        << key << " " << value << ": " << complaint(bytes);
  };
  for (const char* key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
        "attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.dimension_count",
        "vocab_size", "rope.scaling.original_context_length"}) {
    refuses(key, 0u);
    refuses(key, UINT32_MAX);
  }
  for (const char* key : {"rope.freq_base", "rope.scaling.factor", "attention.layer_norm_rms_epsilon"}) {
    for (float value : {0.0f, -1.0f, NAN, INFINITY}) refuses(key, value);
  }
  refuses("rope.freq_base", 0.5f);
  refuses("rope.dimension_count", 15u);
  refuses("rope.dimension_count", 34u);
  refuses("attention.head_count_kv", 3u);
  refuses("attention.head_count_kv", 8u);
  refuses("block_count", 1000u);
  refuses("vocab_size", 321u);
}

TEST(C03, NumbersOfExpertsThatCannotBeAreNamed) {
  const std::string good = fixture_bytes("mixtral");
  for (uint32_t used : {0u, 9u}) {
    std::string bytes = good;
    set_u32(bytes, "llama.expert_used_count", used);
    EXPECT_TRUE(contains(complaint(bytes), "llama.expert_used_count")) << complaint(bytes);
  }
  std::string bytes = good;
  set_u32(bytes, "llama.expert_count", 0);
  EXPECT_TRUE(contains(complaint(bytes), "llama.expert_count")) << complaint(bytes);
}

TEST(Config, HeadsMustDivideTheWidthOnlyWhereTheyShareIt) {
  std::string bytes = fixture_bytes("mixtral");  // no key_length
  set_u32(bytes, "llama.attention.head_count", 6);
  EXPECT_TRUE(contains(complaint(bytes), "llama.attention.head_count is 6, which does not divide"))
      << complaint(bytes);
  EXPECT_EQ(config_of("mistral-headdim").q_shape().rows, 128);
}

TEST(Config, AnUnknownScalingIsRefusedByName) {
  std::string bytes = fixture_bytes("llama-yarn");
  rename(bytes, "yarn", "warp");
  EXPECT_TRUE(contains(complaint(bytes), "llama.rope.scaling.type is \"warp\"")) << complaint(bytes);
}

TEST(Architecture, AnUnknownOneIsRefusedWithItsNameAndTheKnownOnes) {
  std::string bytes = fixture_bytes("llama-yarn");
  rename(bytes, "llama", "l\x1b[2J");
  const std::string message = complaint(bytes);
  EXPECT_TRUE(contains(message, "architecture")) << message;
  EXPECT_FALSE(contains(message, "\x1b")) << "a control character reaches the terminal";
  for (const Entry& entry : architectures()) EXPECT_TRUE(contains(message, entry.name)) << message;
}

}  // namespace
}  // namespace juno::model::testing
