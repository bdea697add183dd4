// SPDX-License-Identifier: Apache-2.0
#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "model/support.h"

namespace juno::model::testing {
namespace {

// The table that the bytes give, and what was wrong with them.
struct Made {
  ops::Rope rope;
  std::string faults;
};
Made rope_of(const std::string& bytes, int64_t context, RopeLayout layout) {
  const gguf::Reader file = open(bytes);
  Faults faults;
  Keys keys(file.metadata(), read_architecture(file), faults);
  const Config config = read_config(file, keys, context, {});
  const auto op = reference(ops::Activations::kInt8);
  DeviceMemory memory(op->device());
  Loader loader(file, config, keys, faults, &memory);
  Made made{.rope = make_rope(loader, layout)};
  const auto raised = guard([&] { faults.raise("test.gguf"); });
  if (!raised) made.faults = raised.error().message;
  return made;
}

ops::Rope fixture_rope(const std::string& fixture, int64_t context = 0) {
  return rope_of(fixture_bytes(fixture), context, RopeLayout::kHalves).rope;
}

float stored(const std::string& fixture, const char* tensor, size_t i) {
  const std::string bytes = fixture_bytes(fixture);
  const gguf::Reader file = open(bytes);
  float value;
  std::memcpy(&value, file.tensor(tensor)->data + i * sizeof value, sizeof value);
  return value;
}

TEST(Rope, PairsTurnByPowersOfTheBase) {
  const ops::Rope rope = fixture_rope("llama-untied");  // base 10000, heads of 16
  EXPECT_EQ(rope.head_dim, 16);
  EXPECT_EQ(rope.magnitude, 1);
  const std::vector<double> expected{1,    0.31622776601683794,   0.1,   0.031622776601683791,
                                     0.01, 0.0031622776601683794, 0.001, 0.00031622776601683794};
  ASSERT_EQ(rope.freq.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(rope.freq[i], expected[i]);
}

TEST(Rope, TheLayoutIsTheArchitecturesChoice) {
  const std::string bytes = fixture_bytes("llama-untied");
  EXPECT_TRUE(rope_of(bytes, 0, RopeLayout::kInterleaved).rope.interleaved);
  EXPECT_FALSE(rope_of(bytes, 0, RopeLayout::kHalves).rope.interleaved);
}

TEST(Rope, PartOfAHeadRotatesWhereTheFileSaysSo) {
  const ops::Rope rope = fixture_rope("phi4-mini", 64);
  EXPECT_EQ(rope.head_dim, 24);
  EXPECT_EQ(rope.freq.size(), 9u);
}

TEST(Rope, LinearScalingDividesEveryAngle) {
  const ops::Rope scaled = fixture_rope("llama-linear-bias"), plain = fixture_rope("llama-untied");
  for (size_t i = 0; i < plain.freq.size(); ++i) EXPECT_EQ(scaled.freq[i], plain.freq[i] / 4);
  EXPECT_EQ(scaled.magnitude, 1);
}

// From the paper's formulas, evaluated in Python: the range of blended pairs is [0, 6].
TEST(Rope, YarnBlendsBetweenTheRoundedCorrectionRange) {
  const ops::Rope rope = fixture_rope("llama-yarn");
  const std::vector<double> expected{
      1.0,     0.4920486595415554,     0.23717082451262847,   0.11114246312743269,
      0.05,    0.02108779969463809,    0.007905694150420948,  0.004445698525097307,
      0.0025,  0.0014058533129758727,  0.0007905694150420948, 0.0004445698525097307,
      0.00025, 0.00014058533129758727, 7.905694150420948e-05, 4.445698525097307e-05};
  ASSERT_EQ(rope.freq.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(rope.freq[i], expected[i], 1e-15 * expected[i] * 4);
  EXPECT_DOUBLE_EQ(rope.magnitude, 1.138629436111989);
}

TEST(Rope, Llama3DividesByItsOwnNumbers) {
  const ops::Rope rope = fixture_rope("llama3-rope");
  for (size_t i : {size_t{0}, size_t{7}, size_t{15}}) {
    const double divided = rope.freq[i] * stored("llama3-rope", "rope_freqs.weight", i);
    EXPECT_NEAR(divided, std::pow(500000.0, -2.0 * double(i) / 32), 1e-12 * divided);
  }
  EXPECT_GT(stored("llama3-rope", "rope_freqs.weight", 15), 1) << "the fixture scales nothing";
}

TEST(Rope, LongRopeTakesTheSetOfTheContext) {
  const ops::Rope within = fixture_rope("phi3-longrope", 64), beyond = fixture_rope("phi3-longrope", 65);
  const double plain = std::pow(10000.0, -2.0 * 3 / 16);
  EXPECT_NEAR(within.freq[3], plain / stored("phi3-longrope", "rope_factors_short.weight", 3), 1e-12);
  EXPECT_NEAR(beyond.freq[3], plain / stored("phi3-longrope", "rope_factors_long.weight", 3), 1e-12);
  EXPECT_NE(within.freq[3], beyond.freq[3]);
  EXPECT_EQ(within.magnitude, beyond.magnitude);
  EXPECT_FLOAT_EQ(float(within.magnitude), 1.2247449f);
}

TEST(Rope, ADivisorThatIsNoNumberIsNamed) {
  std::string bytes = fixture_bytes("llama3-rope");
  const gguf::Reader file = open(bytes);
  const size_t data =
      size_t(reinterpret_cast<const char*>(file.tensor("rope_freqs.weight")->data) - bytes.data());
  std::memset(&bytes[data], 0, sizeof(float));
  const Made made = rope_of(bytes, 0, RopeLayout::kInterleaved);
  EXPECT_NE(made.faults.find("rope_freqs.weight holds 0 at 0"), std::string::npos) << made.faults;
}

}  // namespace
}  // namespace juno::model::testing
