// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace juno {
namespace {

TEST(Arena, MeasuresWhatAPassNeedsAndThenHandsOutExactlyThat) {
  const auto pass = [](Arena& arena) {
    arena.reset();
    arena.take(100);
    arena.keep(1);
    const size_t mark = arena.mark();
    arena.take(1000);
    arena.rewind(mark);
    return arena.take(64);
  };
  Arena arena;
  arena.measure();
  pass(arena);
  EXPECT_EQ(arena.peak(), 128u + 64 + 1024);
  std::vector<double> memory(arena.peak() / sizeof(double));
  arena.adopt(memory.data(), arena.peak());
  EXPECT_EQ(pass(arena), reinterpret_cast<char*>(memory.data()) + 128);
  EXPECT_EQ(arena.peak(), arena.capacity());
}

TEST(Arena, FailsWhenItIsFullAndStaysUsable) {
  std::vector<double> memory(32);
  Arena arena;
  arena.adopt(memory.data(), 256);
  arena.keep(64);
  arena.take(128);
  EXPECT_FALSE(guard([&] { arena.take(65); }));
  EXPECT_FALSE(guard([&] { arena.keep(SIZE_MAX); }));
  EXPECT_TRUE(guard([&] { arena.take(64); }));
  arena.reset();
  EXPECT_TRUE(guard([&] { arena.take(256); }));
}

}  // namespace
}  // namespace juno
