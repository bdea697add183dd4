// SPDX-License-Identifier: Apache-2.0
#include "base/fp_env.h"

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace juno {
namespace {

TEST(FpEnv, KeepsDenormalsAndGivesTheHostItsModeBack) {
#if defined(__x86_64__)
  constexpr unsigned kFlush = 0x9fc0;  // FTZ and DAZ, as -ffast-math sets them
  const volatile float least_normal = 0x1p-126f;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(kFlush);
  const float flushed = least_normal * 0.5f;
  float kept = 0;
  {
    const FpEnv mode;
    kept = least_normal * 0.5f;
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(flushed, 0.0f) << "the test sets no mode";
  EXPECT_EQ(kept, 0x1p-127f);
  EXPECT_EQ(after & 0xffc0, kFlush);
#else
  GTEST_SKIP() << "how this processor's mode is set is not in the test";
#endif
}

TEST(FpEnv, RoundsToNearest) {
  const volatile float one = 1.0f, tiny = 0x1p-24f;
  std::fesetround(FE_UPWARD);
  float sum = 0;
  {
    const FpEnv mode;
    sum = one + tiny;
  }
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(sum, 1.0f);
  EXPECT_EQ(after, FE_UPWARD);
}

}  // namespace
}  // namespace juno
