// SPDX-License-Identifier: Apache-2.0
#include "backend/backends.h"

#include <gtest/gtest.h>

namespace juno {
namespace {

TEST(Backends, RefuseWhatIsNotThere) {
  const auto cuda = open_backend("cuda", {});
  ASSERT_FALSE(cuda);
  EXPECT_EQ(cuda.error().code, Code::kDevice);
  EXPECT_EQ(cuda.error().message, "[backend] cuda is not built into this program");
  EXPECT_EQ(open_backend("rocm", {}).error().code, Code::kDevice);
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
