// SPDX-License-Identifier: Apache-2.0
// A block of GPU threads on one CPU thread: each is a fibre that runs until it has to meet others. Threads
// that meet at different places, or some of them never, are an error and not a hang.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "backend/gpu/kernels/words.h"
#include "backend/gpu/launch.h"

namespace juno::gpu::host {

// Lanes of a warp that exchange something: two boxes in turn, so that the quick may be one meeting ahead.
struct Warp {
  static constexpr size_t kBox = 32;
  alignas(16) std::byte box[2][kWarp][kBox];
  int arrived = 0;
  uint32_t meetings = 0;
};

struct Copy {
  void* to;
  const void* from;
};

// What a running thread knows of itself.
struct Standing {
  int thread = 0, threads = 0;
  Extent block, grid;
  std::byte* shared = nullptr;
  size_t shared_bytes = 0;
  Warp* warp = nullptr;
  std::vector<std::vector<Copy>>* copies = nullptr;  // groups, the oldest first; the last is not committed
};

Standing& here();

void meet_block();
// Leaves `bytes` of `mine` with the warp; when all lanes have, returns where those of lane 0 lie, kBox bytes
// apart.
const std::byte* meet_warp(const void* mine, size_t bytes);
// Lets the other threads go on until `met`.
void wait_until(bool (*met)(const void* what), const void* what);

// In which order threads get their turn. A kernel whose result depends on it has a race.
enum class Order { kForward, kBackward };

// Runs body(args) for each thread of each block, blocks one after another. Throws Error.
using Body = void (*)(const void* args);
void run_grid(Body body, const Launch& launch, Order order);

}  // namespace juno::gpu::host
