// SPDX-License-Identifier: Apache-2.0
#include "backend/backends.h"

#include <gtest/gtest.h>

namespace juno {
namespace {

TEST(Backends, RefuseWhatIsNotThere) {
  const auto rocm = open_backend("rocm", {});
  ASSERT_FALSE(rocm);
  EXPECT_EQ(rocm.error().code, Code::kDevice);
  EXPECT_EQ(rocm.error().message, "[backend] rocm is not built into this program");
  const auto far = open_backend("cuda:999", {});
  ASSERT_FALSE(far) << "no machine has so many, and most have no driver";
  EXPECT_EQ(far.error().code, Code::kDevice);
  EXPECT_EQ(open_backend("cuda:x", {}).error().code, Code::kUsage);
  const auto odd = open_backend("abacus", {});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, Code::kUsage);
  EXPECT_NE(odd.error().message.find("cpu, reference"), std::string::npos);
  const auto isa = open_backend("cpu", {.isa = "mmx"});
  ASSERT_FALSE(isa);
  EXPECT_EQ(isa.error().code, Code::kUsage);
  EXPECT_NE(isa.error().message.find("baseline"), std::string::npos);
}

TEST(Backends, TakeTheThreadsTheyAreGiven) {
  const auto three = open_backend("cpu", {.threads = 3});
  ASSERT_TRUE(three);
  EXPECT_EQ((*three)->threads(), 3);
  const auto reference = open_backend("reference", {});
  ASSERT_TRUE(reference);
  EXPECT_EQ((*reference)->threads(), 1);
}

}  // namespace
}  // namespace juno
