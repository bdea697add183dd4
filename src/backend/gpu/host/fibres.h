// SPDX-License-Identifier: Apache-2.0
// What a kernel's thread on the CPU can ask for: it is a fibre (block.h) that runs until it has to wait for
// others. Threads that meet at different places, or some of them never, are an error and not a hang.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/gpu/kernels/words.h"
#include "backend/gpu/launch.h"

namespace juno::gpu::host {

// Threads that wait for one another.
struct Meeting {
  int arrived = 0;
  uint32_t meetings = 0;
};

// Lanes of a warp that exchange something: two boxes in turn, so that the quick may be one meeting ahead.
struct Warp {
  static constexpr size_t kBox = 32;
  alignas(16) std::byte box[2][kWarp][kBox];
  Meeting meeting;
  int arrived = 0, line = 0;  // where in the text its lanes meet others, this warp's or the block's
};

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
};
using Copies = std::vector<Copy>;
void land(const Copies& copies);

// What a running thread knows of itself.
struct Standing {
  int thread = 0, threads = 0;
  Extent block, grid;
  std::byte* shared = nullptr;
  size_t shared_bytes = 0;
  Warp* warp = nullptr;
  bool late = false;                      // copies come as late as they may, else at once
  std::vector<Copies>* copies = nullptr;  // groups, the oldest first; the last is not committed
};

Standing& here();

// `line`: where in the text, which must be the same for all lanes of a warp.
void meet_block(int line);
// Leaves `bytes` of `mine` with the warp; when all lanes have, returns where those of lane 0 lie, kBox bytes
// apart.
const std::byte* meet_warp(const void* mine, size_t bytes, int line);
// Lets the other threads go on until `met`.
void wait_until(bool (*met)(const void* what), const void* what);
// Until all launches before this one are done.
void wait_dependency();
// Copies that arrive when nothing else is left to do; then landed(what).
void send(Copies copies, void (*landed)(void* what), void* what);

}  // namespace juno::gpu::host
