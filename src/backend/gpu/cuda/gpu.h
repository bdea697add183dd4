// SPDX-License-Identifier: Apache-2.0
// The vocabulary of kernels, for nvcc. Included by kernels/gpu.h before everything else, so that the text
// shared with the CPU (base/portable.h) is compiled for the device.
#pragma once
#define JUNO_BOTH __host__ __device__ __forceinline__
#define JUNO_GPU __device__ __forceinline__
#define JUNO_UNROLL _Pragma("unroll")
#define JUNO_PRAGMA(text) _Pragma(#text)
#define JUNO_UNROLL_BY(n) JUNO_PRAGMA(unroll n)

// Of kernels/list.h: the kernel's symbol is juno_ and its name there.
#define JUNO_DEFINE_KERNEL(name, Args, threads, blocks)           \
  extern "C" __global__ void __launch_bounds__(threads, blocks)   \
      juno_##name(const __grid_constant__ juno::gpu::Args args) { \
    juno::gpu::name(args);                                        \
  }

#include <cstddef>
#include <cstdint>

#include "backend/gpu/kernels/words.h"
#include "base/portable.h"

namespace juno::gpu {

extern __shared__ __align__(1024) unsigned char juno_shared_memory[];

// Where a thread stands.
JUNO_GPU int thread() { return static_cast<int>(threadIdx.x); }
JUNO_GPU int threads() { return static_cast<int>(blockDim.x); }
JUNO_GPU int lane() { return static_cast<int>(threadIdx.x % kWarp); }
JUNO_GPU int warp() { return static_cast<int>(threadIdx.x / kWarp); }
JUNO_GPU int warps() { return static_cast<int>(blockDim.x / kWarp); }
JUNO_GPU int block_x() { return static_cast<int>(blockIdx.x); }
JUNO_GPU int block_y() { return static_cast<int>(blockIdx.y); }
JUNO_GPU int block_z() { return static_cast<int>(blockIdx.z); }
JUNO_GPU int blocks_x() { return static_cast<int>(gridDim.x); }
JUNO_GPU int blocks_y() { return static_cast<int>(gridDim.y); }

// Together: every thread of the block, or every lane of the warp, must come.
// The memory that a block's threads share; its size is Launch::shared.
template <class T = unsigned char>
JUNO_GPU T* shared(size_t offset = 0) {
  return reinterpret_cast<T*>(juno_shared_memory + offset);
}
JUNO_GPU void barrier() { __syncthreads(); }
JUNO_GPU void warp_barrier() { __syncwarp(); }
// All `count` threads of team `team`, neighbours, whole warps; there are up to six. Numbers of barriers are
// written out: a kernel that works them out has all sixteen, and a multiprocessor has room for four of its
// blocks.
JUNO_GPU void team_barrier(int team, int count) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.eq.s32 p, %0, 0;\n @p bar.sync 1, %1;\n"
      "setp.eq.s32 p, %0, 1;\n @p bar.sync 2, %1;\n"
      "setp.eq.s32 p, %0, 2;\n @p bar.sync 3, %1;\n"
      "setp.eq.s32 p, %0, 3;\n @p bar.sync 4, %1;\n"
      "setp.eq.s32 p, %0, 4;\n @p bar.sync 5, %1;\n"
      "setp.eq.s32 p, %0, 5;\n @p bar.sync 6, %1;\n }" ::"r"(team),
      "r"(count)
      : "memory");
}
template <class T>
JUNO_GPU T shuffle(T value, int from_lane) {
  return __shfl_sync(0xffffffffu, value, from_lane);
}
template <class T>
JUNO_GPU T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
JUNO_GPU int warp_max(int value) { return __reduce_max_sync(0xffffffffu, value); }
JUNO_GPU uint32_t warp_max(uint32_t value) { return __reduce_max_sync(0xffffffffu, value); }

// Integers.
// c + the products of four signed bytes.
JUNO_GPU int dot4(uint32_t a, uint32_t b, int c) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), c);
}
// c + low16(a) * byte0(b) + high16(a) * byte1(b), all signed.
JUNO_GPU int dot2(uint32_t a, uint32_t b, int c) {
  return __dp2a_lo(static_cast<int>(a), static_cast<int>(b), c);
}
// Four of the eight bytes of high:low, chosen by the nibbles of `selector` (three bits each, the fourth is
// 0).
JUNO_GPU uint32_t bytes_of(uint32_t low, uint32_t high, uint32_t selector) {
  return __byte_perm(low, high, selector);
}
JUNO_GPU uint32_t atomic_add(uint32_t* to, uint32_t value) { return atomicAdd(to, value); }
JUNO_GPU void fence() { __threadfence(); }

// Halves.
JUNO_GPU float half_to_float(uint16_t h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
// Rounded to nearest even.
JUNO_GPU uint16_t float_to_half(float x) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}

// Memory.
// Weights: read once, never written while a kernel runs.
JUNO_GPU Quad32 stream16(const void* from) {
  Quad32 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x[0]), "=r"(v.x[1]), "=r"(v.x[2]), "=r"(v.x[3])
      : "l"(from));
  return v;
}
// The same for loads narrower than a sector, whose rest is wanted soon.
JUNO_GPU Quad32 constant16(const void* from) {
  Quad32 v;
  asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x[0]), "=r"(v.x[1]), "=r"(v.x[2]), "=r"(v.x[3])
      : "l"(from));
  return v;
}
JUNO_GPU Pair32 constant8(const void* from) {
  Pair32 v;
  asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(v.x[0]), "=r"(v.x[1]) : "l"(from));
  return v;
}
JUNO_GPU uint32_t constant4(const void* from) {
  uint32_t v;
  asm("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}
JUNO_GPU uint16_t constant2(const void* from) {
  uint16_t v;
  asm("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(from));
  return v;
}
JUNO_GPU uint8_t constant1(const void* from) { return __ldg(static_cast<const uint8_t*>(from)); }

// Memory that earlier kernels wrote, so not before wait_dependency.
JUNO_GPU Quad32 load16(const void* from) { return *static_cast<const Quad32*>(from); }

// Asks for [from, from + bytes) to come to the L2 cache; both multiples of 16. One lane asks.
JUNO_GPU void prefetch(const void* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
#else
  for (uint32_t i = 0; i < bytes; i += 128)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const char*>(from) + i));
#endif
}

// 16 bytes from global to shared memory while the thread goes on; there after copies_wait and a barrier.
JUNO_GPU void copy_async16(void* to_shared, const void* from) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(to_shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
// The same for 4, 8 or 16 bytes.
template <int kBytes>
JUNO_GPU void copy_async(void* to_shared, const void* from) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(to_shared));
  if constexpr (kBytes == 16) copy_async16(to_shared, from);
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(kBytes) : "memory");
}
JUNO_GPU void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kPending of this thread's newest committed groups are under way.
template <int kPending>
JUNO_GPU void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Tensor cores: one warp, fragments as PTX lays them out.
// c[16x8] += a[16x16] b[16x8], halves; exact while all
// sums are integers below 2^24.
JUNO_GPU void mma_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Programmatic dependent launch.
// Before it only weights may be
// read; after it all that earlier kernels wrote is there.
JUNO_GPU void wait_dependency() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// From here on the next kernel's blocks may come, as far as there is room for them.
JUNO_GPU void trigger_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace juno::gpu
