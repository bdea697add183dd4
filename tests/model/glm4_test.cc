// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/support.h"

namespace juno::model::testing {
namespace {

TEST(Glm4, RefusesTheRotaryLayoutOfTheModelsThatSee) {
  std::string bytes = fixture_bytes("glm4");
  rename(bytes, "general.quantization_version", "glm4.rope.dimension_sections");
  EXPECT_NE(complaint(bytes).find("glm4.rope.dimension_sections asks for"), std::string::npos)
      << complaint(bytes);
}

}  // namespace
}  // namespace juno::model::testing
