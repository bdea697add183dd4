// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/stream.h"

#include <algorithm>

#include "base/error.h"

namespace juno::gpu::host {
namespace {

constexpr size_t kAhead = 2;             // launches that begin before one that has not run
constexpr uint32_t kEarlyThreads = 512;  // of the blocks that begin early; one does in any case

Extent place(const Extent& grid, uint64_t block) {
  const uint64_t row = block / grid.x;
  return {static_cast<uint32_t>(block % grid.x), static_cast<uint32_t>(row % grid.y),
          static_cast<uint32_t>(row / grid.y)};
}

}  // namespace

template <class Action>
void Stream::guarded(Action&& action) {
  try {
    action();
  } catch (...) {
    grids_.clear();
    throw;
  }
}

void Stream::launch(Body body, const Launch& launch, const Weather& weather) {
  if (launch.threads == 0 || launch.threads % kWarp != 0 || launch.threads > 1024 || launch.grid.count() == 0)
    fail(Code::kDevice, "[backend/gpu] kernel {}: {} blocks of {} threads", launch.kernel,
         launch.grid.count(), launch.threads);
  guarded([&] {
    grids_.push_back(std::make_unique<Grid>(Grid{body, launch, weather, {}}));
    begin(*grids_.back());
    while (grids_.size() > kAhead) {
      finish(*grids_.front());
      grids_.pop_front();
    }
  });
}

void Stream::finish() {
  guarded([&] {
    for (; !grids_.empty(); grids_.pop_front()) finish(*grids_.front());
  });
}

void Stream::begin(Grid& grid) {
  const uint64_t most = std::max<uint64_t>(kEarlyThreads / grid.launch.threads, 1);
  for (uint64_t block = 0; block < std::min(most, grid.launch.grid.count()); ++block) {
    grid.begun.push_back(std::make_unique<Block>(grid.body, grid.launch, grid.weather));
    grid.begun.back()->begin(place(grid.launch.grid, block));
  }
}

void Stream::finish(Grid& grid) {
  const uint64_t first = grid.begun.size(), count = grid.launch.grid.count();
  for (const auto& block : grid.begun) block->finish();
  Block& block = *grid.begun.front();
  for (uint64_t i = first; i < count; ++i)
    block.run(place(grid.launch.grid, grid.weather.backward() ? count - 1 - (i - first) : i));
}

}  // namespace juno::gpu::host
