// SPDX-License-Identifier: Apache-2.0
// What a model needs and a file lacks: named, all at once, before any weight is read.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/support.h"

namespace juno::model::testing {
namespace {

using ::testing::TestWithParam;

bool contains(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// Keys that each fixture's architecture cannot do without, beside those that all need.
std::vector<std::string> required_keys(const std::string& fixture, const std::string& architecture) {
  std::vector<std::string> keys{"block_count",          "context_length",
                                "embedding_length",     "feed_forward_length",
                                "attention.head_count", "attention.layer_norm_rms_epsilon"};
  const auto also = [&](std::initializer_list<const char*> more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  if (fixture == "llama-linear-bias" || architecture == "gemma3") also({"rope.scaling.factor"});
  if (fixture == "llama-yarn" || fixture == "olmo3") {
    also({"rope.scaling.factor", "rope.scaling.original_context_length"});
  }
  if (fixture == "phi3-longrope" || fixture == "phi4-mini") also({"rope.scaling.original_context_length"});
  if (architecture == "gemma2") also({"attn_logit_softcapping", "final_logit_softcapping"});
  if (architecture == "gemma2" || architecture == "gemma3" || fixture == "olmo3") {
    also({"attention.sliding_window"});
  }
  if (architecture.starts_with("granite")) {
    also({"embedding_scale", "attention.scale", "residual_scale", "logit_scale"});
  }
  if (fixture == "mixtral" || architecture.ends_with("moe")) also({"expert_count", "expert_used_count"});
  for (std::string& key : keys) key = architecture + "." + key;
  keys.push_back("general.architecture");
  return keys;
}

// A model can do without: a head of its own, llama its frequency divisors, llama and GLM-4 their biases.
bool optional(const std::string& architecture, std::string_view tensor) {
  return tensor == "output.weight" || tensor == "rope_freqs.weight" ||
         (tensor.ends_with(".bias") && (architecture == "llama" || architecture == "glm4"));
}

class Needs : public TestWithParam<std::string> {
 protected:
  const std::string bytes_ = fixture_bytes(GetParam());
  const gguf::Reader file_ = open(bytes_);
  const std::string architecture_ = file_.metadata().require<std::string>("general.architecture");
};

TEST_P(Needs, EachRequiredKeyByName) {
  for (const std::string& key : required_keys(GetParam(), architecture_)) {
    std::string damaged = bytes_;
    take_away(damaged, key);
    EXPECT_TRUE(contains(complaint(damaged), key + " is missing")) << key << ": " << complaint(damaged);
  }
}

TEST_P(Needs, EachRequiredTensorByName) {
  for (const gguf::TensorInfo& info : file_.tensors()) {
    std::string damaged = bytes_;
    take_away(damaged, info.name);
    const std::string message = complaint(damaged);
    if (optional(architecture_, info.name)) {
      EXPECT_EQ(message, "") << info.name;
    } else {
      EXPECT_TRUE(contains(message, fmt::format("the tensor {} is missing", info.name))) << message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, Needs, ::testing::ValuesIn(fixture_names()),
                         [](const auto& info) { return test_name(info.param); });

// A device that must not be touched.
class Untouchable final : public ops::Device {
 public:
  Result<void*> allocate(size_t) override { return touched<void*>(); }
  void release(void*) override {}
  Result<Tensor> upload(const Tensor&) override { return touched<Tensor>(); }
  void write(const Tensor&, const void*) override { ADD_FAILURE(); }
  void read(void*, const Tensor&) override { ADD_FAILURE(); }

 private:
  template <class T>
  Result<T> touched() {
    ADD_FAILURE() << "a weight was read";
    return tl::unexpected(Error(Code::kDevice, "touched"));
  }
};

TEST(C06, ThreeMissingTensorsAreNamedAtOnceBeforeAnyWeightIsRead) {
  std::string bytes = fixture_bytes("llama-untied");
  for (const char* name : {"token_embd.weight", "blk.1.attn_k.weight", "blk.2.ffn_norm.weight"})
    take_away(bytes, name);
  Untouchable device;
  const auto loaded = load_model(open(bytes), 0, device, {});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::kBadData);
  for (const char* name :
       {"token_embd.weight", "blk.1.attn_k.weight", "blk.2.ffn_norm.weight", "test.gguf"}) {
    EXPECT_TRUE(contains(loaded.error().message, name)) << loaded.error().message;
  }
}

TEST(C06, MissingKeysAreNamedAtOnce) {
  std::string bytes = fixture_bytes("granite");
  for (const char* name : {"granite.block_count", "granite.context_length"}) take_away(bytes, name);
  const std::string message = complaint(bytes);
  for (const char* name : {"granite.block_count", "granite.context_length"})
    EXPECT_TRUE(contains(message, name));
}

TEST(Loader, KeysOfOneArchitectureAndTensorsAreNamedTogether) {
  std::string bytes = fixture_bytes("granite");
  take_away(bytes, "granite.logit_scale");
  take_away(bytes, "blk.0.attn_q.weight");
  const std::string message = complaint(bytes);
  EXPECT_TRUE(contains(message, "granite.logit_scale is missing")) << message;
  EXPECT_TRUE(contains(message, "blk.0.attn_q.weight is missing")) << message;
}

TEST(Loader, AShapeIsToldAsTheFileHasItAndAsItShouldBe) {
  std::string bytes = fixture_bytes("llama-untied");
  set_u32(bytes, "llama.attention.head_count_kv", 4);
  EXPECT_TRUE(contains(complaint(bytes), "blk.0.attn_k.weight has the shape [64, 32], not [64, 64]"))
      << complaint(bytes);
}

TEST(Loader, AFusedMatrixIsNamedOnce) {
  std::string bytes = fixture_bytes("phi3-window");
  take_away(bytes, "blk.0.attn_qkv.weight");
  const std::string message = complaint(bytes);
  EXPECT_EQ(message.find("attn_qkv"), message.rfind("attn_qkv")) << message;
}

TEST(Loader, ATypeThatIsNoFormatIsNamed) {
  std::string bytes = fixture_bytes("llama-untied");
  const std::string name = "blk.0.attn_q.weight";
  const size_t type = bytes.find(name) + name.size() + 4 + 2 * 8;  // after the number of dimensions and both
  constexpr char kI32 = 26;
  bytes[type] = kI32;
  const std::string message = complaint(bytes);
  EXPECT_TRUE(contains(message, name + " has the type I32")) << message;
  EXPECT_TRUE(contains(message, "Q4_K")) << message;
}

TEST(Loader, BothSetsOfLongRopeFactorsMustBeThere) {
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    std::string bytes = fixture_bytes("phi3-longrope");
    take_away(bytes, name);
    EXPECT_TRUE(contains(complaint(bytes), name)) << complaint(bytes);
  }
}

TEST(Loader, OneWarningListsAllThatNothingAskedFor) {
  std::string bytes = fixture_bytes("llama-linear-bias");
  for (const char* name : {"blk.0.attn_q.bias", "blk.2.ffn_up.bias", "llama.rope.freq_base"})
    take_away(bytes, name);
  Listener listener;
  ASSERT_TRUE(check_model(open(bytes), 0, listener.log));
  EXPECT_EQ(listener.lines, 1);
  for (const char* name : {"blk.0.attn_q.bia~", "blk.2.ffn_up.bia~", "llama.rope.freq_bas~"}) {
    EXPECT_TRUE(contains(listener.heard, name)) << listener.heard;
  }
}

TEST(Loader, FixturesLoadWithoutAWarning) {
  for (const std::string& name : fixture_names()) {
    Listener listener;
    const std::string bytes = fixture_bytes(name);
    const auto checked = check_model(open(bytes), 0, listener.log);
    EXPECT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(listener.heard, "") << name;
  }
}

}  // namespace
}  // namespace juno::model::testing
