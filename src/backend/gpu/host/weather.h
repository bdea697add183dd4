// SPDX-License-Identifier: Apache-2.0
// What a device leaves open, told by a number: which blocks, warps and lanes get on first, and whether copies
// come at once or as late as they may. A result that depends on it has a race.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "backend/gpu/kernels/words.h"

namespace juno::gpu::host {

class Weather {
 public:
  // 0: from front to back, copies at once. 1: from back to front. 2 and 3: the same, copies late. From 4 on
  // each is another order of warps and lanes.
  explicit Weather(uint32_t number = 0) : number_(number) {}

  bool backward() const { return (number_ & 1) != 0; }
  bool late() const { return (number_ & 2) != 0; }
  int lane(int i) const { return ((backward() ? kWarp - 1 - i : i) + static_cast<int>(number_ / 4)) % kWarp; }

  // One that comes first runs ahead of the others as far as barriers let it.
  std::vector<int> warps(int count) const {
    std::vector<int> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    if (backward()) std::ranges::reverse(order);
    uint32_t x = number_ / 4;
    for (int i = count; x != 0 && i > 1; --i) {
      x = x * 1664525u + 1013904223u;
      std::swap(order[static_cast<size_t>(i - 1)], order[(x >> 8) % static_cast<uint32_t>(i)]);
    }
    return order;
  }

 private:
  uint32_t number_;
};

}  // namespace juno::gpu::host
