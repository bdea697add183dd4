// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/support.h"

namespace juno::model::testing {
namespace {

using ops::Activations;

std::vector<std::vector<float>> logits_of(const std::string& bytes) {
  const Expected::Sequence sequence = expected("olmo3").sequences.back();
  return logits_in_pieces(bytes, sequence, reference(Activations::kInt8), sequence.ids.size(), 0);
}

TEST(Olmo2, HasWindowsInThreeLayersOfFourWhereTheFileNamesNone) {
  const std::string named = fixture_bytes("olmo3");
  std::string unnamed = named;
  take_away(unnamed, "olmo2.attention.sliding_window_pattern");
  EXPECT_TRUE(same_bits(logits_of(named), logits_of(unnamed)));
}

TEST(Olmo2, RotatesWindowedLayersWithTheBaseOfAllWhereTheFileHasNoOther) {
  const std::string given = fixture_bytes("olmo3");
  std::string absent = given, other = given;
  take_away(absent, "olmo2.rope.freq_base_swa");
  set_f32(other, "olmo2.rope.freq_base_swa", 10000);
  EXPECT_TRUE(same_bits(logits_of(given), logits_of(absent)));
  EXPECT_FALSE(same_bits(logits_of(given), logits_of(other)));
}

}  // namespace
}  // namespace juno::model::testing
