// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/rates.h"

#include "backend/cpu/isa_test.h"

namespace juno::cpu::test {
namespace {

class RatesOf : public OnEveryIsa {};

TEST_P(RatesOf, AreMeasuredWithAsMuchMemoryAsIsGiven) {
  const Rates rates = measure_rates(GetParam()->name, 2, size_t{64} << 20);
  EXPECT_EQ(rates.buffer, size_t{64} << 20);
  EXPECT_GT(rates.read, 1e7);
  EXPECT_GT(rates.multiply_add, 1e6);
}

TEST_P(RatesOf, CountTheProductsOfEachRound) {
  const Probe& probe = GetParam()->kernels().probe;
  EXPECT_GT(probe.multiply_add(1), 0);
  EXPECT_EQ(probe.multiply_add(6), 6 * probe.multiply_add(1));
}

INSTANTIATE_TEST_SUITE_P(Isa, RatesOf, every_isa(), isa_name);

TEST(Rates, RefusesAnInstructionSetThatNobodyKnows) {
  const auto refused = guard([] { return measure_rates("abacus", 1, 1); });
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("abacus"), std::string::npos);
}

}  // namespace
}  // namespace juno::cpu::test
