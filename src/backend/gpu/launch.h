// SPDX-License-Identifier: Apache-2.0
// One kernel call as plain bytes, and who plans them: pure host code, the same with and without a GPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace juno::gpu {

struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

// Memory that a launch reads once and nobody soon again: the L2 cache need not keep it.
struct Passing {
  const void* begin = nullptr;
  uint64_t bytes = 0;
};

struct Launch {
  static constexpr size_t kMaxArgs = 512;

  int kernel = -1;  // index into kernel_names()
  Extent grid;
  uint32_t threads = 0;  // of a block, a multiple of 32
  uint32_t shared = 0;   // bytes of shared memory of a block
  uint32_t args_size = 0;
  Passing passing;
  alignas(16) std::byte args[kMaxArgs];  // the kernel's one parameter, a struct of kernels/args.h
};

// In the order of kernels/list.h. An image of kernels has these names as symbols, in any order.
std::span<const char* const> kernel_names();
// Threads of a block that the kernel was compiled for: its launches have at most as many.
std::span<const int> kernel_threads();

// What of the device the planning depends on.
struct Chip {
  int multiprocessors = 132;
  uint32_t shared_per_block = 227 * 1024;
  int product_warps = 8;   // of a block that multiplies few tokens
  int product_blocks = 2;  // of these on a multiprocessor
};

template <class Args>
Launch make_launch(int kernel, Extent grid, uint32_t threads, uint32_t shared, const Args& args) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= Launch::kMaxArgs);
  Launch launch{
      .kernel = kernel, .grid = grid, .threads = threads, .shared = shared, .args_size = sizeof(Args)};
  std::memcpy(launch.args, &args, sizeof(Args));
  return launch;
}

}  // namespace juno::gpu
