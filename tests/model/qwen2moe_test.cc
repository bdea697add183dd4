// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/support.h"

namespace juno::model::testing {
namespace {

using ops::Activations;

TEST(Qwen2Moe, TakesTheSharedExpertAsWideAsADenseLayerWhereTheFileDoesNotSay) {
  const std::string stated = fixture_bytes("qwen2moe");
  std::string implied = stated;
  take_away(implied, "qwen2moe.expert_shared_feed_forward_length");
  set_u32(implied, "qwen2moe.feed_forward_length", 64);
  const Expected::Sequence sequence = expected("qwen2moe").sequences[1];
  const auto logits = [&](const std::string& bytes) {
    return logits_in_pieces(bytes, sequence, reference(Activations::kInt8), sequence.ids.size(), 0);
  };
  EXPECT_TRUE(same_bits(logits(stated), logits(implied)));
}

}  // namespace
}  // namespace juno::model::testing
