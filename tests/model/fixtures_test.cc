// SPDX-License-Identifier: Apache-2.0
// Every architecture against the logits that its authors' own code computes (tests/data/archs/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/support.h"

namespace juno::model::testing {
namespace {

using ops::Activations;

class Fixture : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string bytes_ = fixture_bytes(GetParam());
  const Expected expected_ = expected(GetParam());
  bool quantised() const { return GetParam().ends_with("-q8_0"); }
};

int argmax(const std::vector<float>& row) { return int(std::ranges::max_element(row) - row.begin()); }

// How far the best logit is above the second.
double margin(std::vector<float> row) {
  std::ranges::nth_element(row, row.begin() + 1, std::greater<>());
  return double(row[0]) - row[1];
}

TEST_P(Fixture, WithinBothBoundsOfTheReferenceAndWithItsChoices) {
  for (const Expected::Sequence& s : expected_.sequences) {
    SCOPED_TRACE(fmt::format("{} tokens, context {}", s.ids.size(), s.context));
    const auto logits = logits_in_pieces(bytes_, s, reference(Activations::kInt8), s.ids.size(), 0);
    EXPECT_LE(largest_difference(logits, s.logits), expected_.bound);
    EXPECT_LE(largest_difference(logits, s.engine), expected_.bound_engine);
    for (size_t i = 0; i < logits.size(); ++i) {
      if (margin(s.logits[i]) <= 2 * expected_.bound) continue;  // both may move
      EXPECT_EQ(argmax(logits[i]), argmax(s.logits[i]));
    }
  }
}

TEST_P(Fixture, TwoPlanesOfActivationsAreAsGoodAsFloats) {
  const double bound = 4 * expected_.kv16 + 0.01 * expected_.logit_std;
  for (const Expected::Sequence& s : expected_.sequences) {
    const auto logits = logits_in_pieces(bytes_, s, reference(Activations::kInt8x2), s.ids.size(), 0);
    EXPECT_LE(largest_difference(logits, s.logits), bound);
  }
}

TEST_P(Fixture, PiecesGiveTheSameBitsAsTheWhole) {
  for (const Expected::Sequence& s : expected_.sequences) {
    const size_t all = s.ids.size();
    const auto whole = logits_in_pieces(bytes_, s, cpu(1, Activations::kInt8), all, 0);
    for (size_t first : {1, 31, 64}) {
      EXPECT_TRUE(same_bits(whole, logits_in_pieces(bytes_, s, cpu(1, Activations::kInt8), first, all)))
          << first;
    }
    EXPECT_TRUE(same_bits(whole, logits_in_pieces(bytes_, s, cpu(1, Activations::kInt8), 1, 1)))
        << "token by token";
  }
}

TEST_P(Fixture, SeesTheFeaturesItIsThereFor) {
  ASSERT_FALSE(expected_.sensitivity.empty());
  for (const auto& [feature, bounds] : expected_.sensitivity) {
    if (GetParam() == "gemma3-q8_0" && feature == "rope_scaling") continue;  // gemma3 covers it
    EXPECT_GE(bounds, 5) << feature;
  }
}

// The longest sequence, with two layers exchanged.
TEST_P(Fixture, ExchangedLayersAreOutsideTheBounds) {
  std::string swapped = bytes_;
  const gguf::Reader file = open(bytes_);
  for (const gguf::TensorInfo& info : file.tensors()) {
    std::string name(info.name);
    if (name.starts_with("blk.0.")) name[4] = '1';
    else if (name.starts_with("blk.1.")) name[4] = '0';
    swapped.replace(size_t(info.name.data() - bytes_.data()), name.size(), name);
  }
  const Expected::Sequence& s = expected_.sequences.back();
  const auto logits = logits_in_pieces(swapped, s, reference(Activations::kInt8), s.ids.size(), 0);
  EXPECT_GT(largest_difference(logits, s.logits), 2 * expected_.bound);
}

TEST(Fixtures, AreThereForEveryArchitectureOfTheList) {
  EXPECT_GE(fixture_names().size(), 25u);
  std::set<std::string> covered;
  for (const std::string& name : fixture_names()) {
    const std::string bytes = fixture_bytes(name);
    covered.insert(take(check_model(open(bytes), 0, {})).architecture);
  }
  for (const Entry& entry : architectures())
    EXPECT_TRUE(covered.contains(std::string(entry.name))) << entry.name;
}

INSTANTIATE_TEST_SUITE_P(Archs, Fixture, ::testing::ValuesIn(fixture_names()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace juno::model::testing
