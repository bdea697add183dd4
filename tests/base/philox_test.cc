// SPDX-License-Identifier: Apache-2.0
#include "base/philox.h"

#include <gtest/gtest.h>

namespace juno {
namespace {

using Words = std::array<uint32_t, 4>;

// kat_vectors of the authors' Random123.
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SeedPositionAndDrawAreLaidOutLowWordFirst) {
  EXPECT_EQ(philox(0x299f31d0a4093822u, 0x85a308d3243f6a88u, 0x0370734413198a2eu),
            philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}));
}

TEST(Philox, UniformNumbersLieInTheHalfOpenUnitInterval) {
  EXPECT_EQ(uniform(0), 0.0f);
  EXPECT_EQ(uniform(0xffffffff), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform(0x80000000), 0.5f);
}

}  // namespace
}  // namespace juno
