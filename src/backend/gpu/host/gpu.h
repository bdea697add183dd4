// SPDX-License-Identifier: Apache-2.0
// The vocabulary of kernels on the CPU: threads are fibres (fibres.h), what a warp does together is a
// meeting. See cuda/gpu.h for what each word means. `line` is where a word stands in the text.
#pragma once
#define JUNO_GPU inline
#define JUNO_UNROLL
#define JUNO_UNROLL_BY(n)

#include <cassert>
#include <cstring>

#include "backend/gpu/host/fibres.h"
#include "base/half.h"
#include "base/portable.h"

namespace juno::gpu {

// Where a thread stands.
JUNO_GPU int thread() { return host::here().thread; }
JUNO_GPU int threads() { return host::here().threads; }
JUNO_GPU int lane() { return thread() % kWarp; }
JUNO_GPU int warp() { return thread() / kWarp; }
JUNO_GPU int warps() { return threads() / kWarp; }
JUNO_GPU int block_x() { return static_cast<int>(host::here().block.x); }
JUNO_GPU int block_y() { return static_cast<int>(host::here().block.y); }
JUNO_GPU int block_z() { return static_cast<int>(host::here().block.z); }
JUNO_GPU int blocks_x() { return static_cast<int>(host::here().grid.x); }
JUNO_GPU int blocks_y() { return static_cast<int>(host::here().grid.y); }

// Together.
template <class T = unsigned char>
JUNO_GPU T* shared(size_t offset = 0) {
  assert(offset <= host::here().shared_bytes);
  return reinterpret_cast<T*>(host::here().shared + offset);
}
JUNO_GPU void barrier(int line = __builtin_LINE()) { host::meet_block(line); }
JUNO_GPU void warp_barrier(int line = __builtin_LINE()) { host::meet_warp(nullptr, 0, line); }
JUNO_GPU void team_barrier(int team, int count, int line = __builtin_LINE()) {
  host::meet_team(team, count, line);
}

template <class T>
JUNO_GPU T left_by(const std::byte* boxes, int lane) {
  T value;
  std::memcpy(&value, boxes + static_cast<size_t>(lane) * host::Warp::kBox, sizeof value);
  return value;
}
template <class T>
JUNO_GPU T shuffle(T value, int from_lane, int line = __builtin_LINE()) {
  return left_by<T>(host::meet_warp(&value, sizeof value, line), from_lane % kWarp);
}
template <class T>
JUNO_GPU T shuffle_xor(T value, int mask, int line = __builtin_LINE()) {
  const int from = lane() ^ mask;
  return left_by<T>(host::meet_warp(&value, sizeof value, line), from);
}
template <class T>
JUNO_GPU T warp_max(T value, int line = __builtin_LINE()) {
  const std::byte* boxes = host::meet_warp(&value, sizeof value, line);
  for (int i = 0; i < kWarp; ++i) value = left_by<T>(boxes, i) > value ? left_by<T>(boxes, i) : value;
  return value;
}

// Integers.
JUNO_GPU int signed_byte(uint32_t x, int i) { return static_cast<int8_t>(x >> (8 * i)); }
JUNO_GPU int dot4(uint32_t a, uint32_t b, int c) {
  for (int i = 0; i < 4; ++i) c += signed_byte(a, i) * signed_byte(b, i);
  return c;
}
JUNO_GPU int dot2(uint32_t a, uint32_t b, int c) {
  return c + static_cast<int16_t>(a) * signed_byte(b, 0) + static_cast<int16_t>(a >> 16) * signed_byte(b, 1);
}
JUNO_GPU uint32_t bytes_of(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t all = low | static_cast<uint64_t>(high) << 32;
  uint32_t y = 0;
  for (int i = 0; i < 4; ++i)
    y |= static_cast<uint32_t>(all >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
  return y;
}
// Blocks run one after another, threads until they meet.
JUNO_GPU uint32_t atomic_add(uint32_t* to, uint32_t value) {
  const uint32_t before = *to;
  *to = before + value;
  return before;
}
JUNO_GPU void fence() {}

// Halves.
JUNO_GPU float half_to_float(uint16_t h) { return f16_to_f32(h); }
JUNO_GPU uint16_t float_to_half(float x) { return f32_to_f16(x); }

// Memory.
// Misaligned on the device is an error there, so it is one here.
template <class T>
JUNO_GPU T load_constant(const void* from) {
  assert(reinterpret_cast<uintptr_t>(from) % sizeof(T) == 0);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
JUNO_GPU Quad32 stream16(const void* from) { return load_constant<Quad32>(from); }
JUNO_GPU Quad32 constant16(const void* from) { return load_constant<Quad32>(from); }
JUNO_GPU Pair32 constant8(const void* from) { return load_constant<Pair32>(from); }
JUNO_GPU uint32_t constant4(const void* from) { return load_constant<uint32_t>(from); }
JUNO_GPU uint16_t constant2(const void* from) { return load_constant<uint16_t>(from); }
JUNO_GPU uint8_t constant1(const void* from) { return load_constant<uint8_t>(from); }
JUNO_GPU Quad32 load16(const void* from) { return load_constant<Quad32>(from); }
JUNO_GPU void prefetch(const void* from, uint32_t bytes) {
  assert(reinterpret_cast<uintptr_t>(from) % 16 == 0 && bytes % 16 == 0);
  (void)from, (void)bytes;
}

// Copies arrive as late as they may or at once, so that a wait that is missing shows, and a place that is
// still in use.
template <int kBytes>
JUNO_GPU void copy_async(void* to_shared, const void* from) {
  assert(reinterpret_cast<uintptr_t>(to_shared) % kBytes == 0 &&
         reinterpret_cast<uintptr_t>(from) % kBytes == 0);
  const host::Standing& me = host::here();
  assert(to_shared >= me.shared &&
         static_cast<std::byte*>(to_shared) + kBytes <= me.shared + me.shared_bytes);
  if (me.late) me.copies->back().push_back({to_shared, from, kBytes});
  else std::memcpy(to_shared, from, kBytes);
}
JUNO_GPU void copy_async16(void* to_shared, const void* from) { copy_async<16>(to_shared, from); }
JUNO_GPU void copies_commit() { host::here().copies->emplace_back(); }
template <int kPending>
JUNO_GPU void copies_wait() {
  auto& groups = *host::here().copies;
  while (groups.size() > kPending + 1) {
    host::land(groups.front());
    groups.erase(groups.begin());
  }
}

// Programmatic dependent launch: what stands before wait_dependency is done before earlier kernels run,
// whether these have asked for it or not.
JUNO_GPU void wait_dependency() { host::wait_dependency(); }
JUNO_GPU void trigger_dependents() {}

}  // namespace juno::gpu
