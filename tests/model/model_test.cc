// SPDX-License-Identifier: Apache-2.0
// A whole model: its bits depend on nothing but the weights and the tokens.
#include "model/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "model/support.h"

namespace juno::model::testing {
namespace {

using ops::Activations;
using Logits = std::vector<std::vector<float>>;

class Company : public ::testing::TestWithParam<const char*> {};

// Sequence 1 is fed in three pieces while three strangers come and go beside it, on a backend of many
// threads; alone it is the reference that computes it.
TEST_P(Company, OfStrangersChangesNoBit) {
  const std::string bytes = fixture_bytes(GetParam());
  const std::vector<int32_t> ids = expected(GetParam()).sequences.back().ids;
  const auto piece = [&](size_t from, size_t to) {
    return std::vector<int32_t>(ids.begin() + int64_t(from), ids.begin() + int64_t(to));
  };
  Bench alone(open(bytes), 0, reference(Activations::kInt8));
  Bench together(open(bytes), 0, cpu(3, Activations::kInt8));
  const std::vector<std::vector<Bench::Chunk>> passes{
      {{0, piece(3, 20)}, {1, piece(0, 40)}, {2, piece(7, 8)}, {3, piece(50, 90)}},
      {{3, piece(9, 10)}, {0, piece(60, 64)}, {1, piece(40, 41)}},
      {{2, piece(0, 70)}, {1, piece(41, 100)}},
  };
  for (const auto& chunks : passes) {
    const Logits all = together.run(chunks);
    size_t row = 0;
    for (const Bench::Chunk& chunk : chunks) {
      const auto first = all.begin() + int64_t(row);
      const Logits ours(first, first + int64_t(chunk.ids.size()));
      if (chunk.sequence == 1) {
        EXPECT_TRUE(same_bits(ours, alone.run({chunk})));
      }
      row += chunk.ids.size();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, Company,
                         ::testing::Values("llama-untied-q8_0", "gemma3-q8_0", "mixtral", "phi4-mini"),
                         [](const auto& info) { return test_name(info.param); });

class Backend : public ::testing::TestWithParam<std::string> {};

TEST_P(Backend, OfManyThreadsGivesTheReferencesBits) {
  const std::string bytes = fixture_bytes(GetParam());
  const Expected::Sequence sequence = expected(GetParam()).sequences.back();
  const size_t all = sequence.ids.size();
  for (Activations activations : {Activations::kInt8, Activations::kInt8x2}) {
    const Logits good = logits_in_pieces(bytes, sequence, reference(activations), all, 0);
    EXPECT_TRUE(same_bits(good, logits_in_pieces(bytes, sequence, cpu(1, activations), 7, 32)));
    EXPECT_TRUE(same_bits(good, logits_in_pieces(bytes, sequence, cpu(3, activations), all, 0)));
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, Backend, ::testing::ValuesIn(fixture_names()),
                         [](const auto& info) { return test_name(info.param); });

// Every remark in general.* is overwritten with random bytes; only the architecture and the alignment are not
// remarks.
TEST(C07, DescriptiveKeysNeverChangeALogit) {
  const std::string bytes = fixture_bytes("llama-untied");
  const Expected::Sequence sequence = expected("llama-untied").sequences[1];
  const Logits good = logits_in_pieces(bytes, sequence, reference(Activations::kInt8), 17, 0);
  std::mt19937 random(1);
  for (int round = 0; round < 5; ++round) {
    std::string scrambled = bytes;
    int touched = 0;
    const gguf::Reader file = open(bytes);
    for (const gguf::Metadata::Entry& entry : file.metadata().entries()) {
      if (!entry.key.starts_with("general.") || entry.value.type == gguf::ValueType::kArray) continue;
      if (entry.key == "general.architecture" || entry.key == "general.alignment") continue;
      const size_t place = size_t(reinterpret_cast<const char*>(entry.value.bytes.data()) - bytes.data());
      for (size_t i = 0; i < entry.value.bytes.size(); ++i) scrambled[place + i] = char(random());
      ++touched;
    }
    ASSERT_GE(touched, 3);
    EXPECT_TRUE(same_bits(good, logits_in_pieces(scrambled, sequence, reference(Activations::kInt8), 17, 0)));
  }
}

// F16 norms give what the same numbers in F32 give.
TEST(Model, NormsOfAnotherFloatTypeAreWidened) {
  std::string bytes = fixture_bytes("llama-untied");
  const gguf::Reader before = open(bytes);
  std::string halved = bytes;
  const gguf::TensorInfo* norm = before.tensor("output_norm.weight");
  const size_t data = size_t(reinterpret_cast<const char*>(norm->data) - bytes.data());
  for (size_t i = 0; i < norm->dims[0]; ++i) {  // 1.5 in both
    constexpr float kValue = 1.5f;
    constexpr uint16_t kHalf = 0x3e00;
    std::memcpy(&bytes[data + i * sizeof kValue], &kValue, sizeof kValue);
    std::memcpy(&halved[data + i * sizeof kHalf], &kHalf, sizeof kHalf);
  }
  const std::string name = "output_norm.weight";
  halved[halved.find(name) + name.size() + 4 + 8] = 1;  // its type: F16
  const Expected::Sequence sequence = expected("llama-untied").sequences[1];
  EXPECT_TRUE(same_bits(logits_in_pieces(bytes, sequence, reference(Activations::kInt8), 17, 0),
                        logits_in_pieces(halved, sequence, reference(Activations::kInt8), 17, 0)));
}

// One weight that is off by a percent of its matrix's size is seen: the bounds can fail.
TEST(Model, AWrongNormWeightIsOutsideTheBounds) {
  std::string bytes = fixture_bytes("qwen3");
  const Expected e = expected("qwen3");
  const gguf::Reader file = open(bytes);
  const size_t data =
      size_t(reinterpret_cast<const char*>(file.tensor("blk.1.attn_k_norm.weight")->data) - bytes.data());
  float weight;
  std::memcpy(&weight, &bytes[data], sizeof weight);
  weight *= 1.5f;
  std::memcpy(&bytes[data], &weight, sizeof weight);
  const Expected::Sequence& s = e.sequences.back();
  const Logits logits = logits_in_pieces(bytes, s, reference(Activations::kInt8), s.ids.size(), 0);
  EXPECT_GT(largest_difference(logits, s.engine), e.bound_engine);
}

}  // namespace
}  // namespace juno::model::testing
