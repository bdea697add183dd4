// SPDX-License-Identifier: Apache-2.0
// Words of the many-token kernels on the CPU. See cuda/tiles.h for what each means.
#pragma once
#include <utility>

#include "backend/gpu/kernels/gpu.h"
#include "backend/gpu/kernels/prompt_shapes.h"

namespace juno::gpu {

// ---- pairs of halves ------------------------------------------------------------------------------------
JUNO_GPU uint32_t fma_halves(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t y = 0;
  for (int i = 0; i < 32; i += 16) {
    const float x = fma(f16_to_f32(static_cast<uint16_t>(a >> i)), f16_to_f32(static_cast<uint16_t>(b >> i)),
                        f16_to_f32(static_cast<uint16_t>(c >> i)));
    assert(f16_to_f32(f32_to_f16(x)) == x);  // kernels use it on integers, where nothing is rounded
    y |= static_cast<uint32_t>(f32_to_f16(x)) << i;
  }
  return y;
}

JUNO_GPU uint32_t masked_over_1024(uint32_t x, uint32_t mask) { return (x & mask) | 0x64006400u; }

// ---- barriers passed one after the other ----------------------------------------------------------------
struct Arrivals {
  int16_t count, left;
  uint32_t phase;

  void init(int threads) { *this = {static_cast<int16_t>(threads), static_cast<int16_t>(threads), 0}; }
  void arrive() {
    if (--left > 0) return;
    left = count;
    ++phase;
  }
  void wait(int parity) {
    struct Wanted {
      const uint32_t& phase;
      uint32_t parity;
    } const wanted{phase, static_cast<uint32_t>(parity)};
    host::wait_until(
        [](const void* what) {
          const auto& w = *static_cast<const Wanted*>(what);
          return w.phase % 2 != w.parity;
        },
        &wanted);
  }
};

JUNO_GPU void arrivals_ready() {}
// At once, or when nobody has anything else to do.
JUNO_GPU void copies_arrive(Arrivals& landed) {
  if (!host::here().late) return landed.arrive();
  host::send(
      std::exchange(host::here().copies->back(), {}),
      [](void* what) { static_cast<Arrivals*>(what)->arrive(); }, &landed);
}

// ---- registers are plenty
template <int kCount>
JUNO_GPU void keep_registers() {}
template <int kCount>
JUNO_GPU void take_registers() {}

// ---- fetching: stretches come with the end ------------------------------------------
inline constexpr int kFetchArrivals = kWarp;
JUNO_GPU void fetch_begin(Arrivals&, int) {}
JUNO_GPU void fetch(Arrivals&, void* to, const void* from, int bytes) {
  assert(bytes % 16 == 0);
  for (int i = lane() * 16; i < bytes; i += kWarp * 16)
    copy_async16(static_cast<std::byte*>(to) + i, static_cast<const std::byte*>(from) + i);
}
JUNO_GPU void fetch_end(Arrivals& landed) { copies_arrive(landed); }

// ---- products -------------------------------------------------------------------------------------------
JUNO_GPU void products_begin() {}
JUNO_GPU void products_end() {}
template <int kPending>
JUNO_GPU void products_wait() {}
template <int kPending, int kCount>
JUNO_GPU void products_wait(float (&)[kCount]) {}
JUNO_GPU void tiles_read() {}

// c (+)= the first kDepth columns of a times b.
template <int kDepth, int kCount, class At>
JUNO_GPU void multiply_columns(float (&c)[kCount], const uint32_t (&a)[4], const unsigned char* b, At&& at,
                               bool fresh) {
  const std::byte* boxes = host::meet_warp(a, sizeof a, __LINE__);
  float rows[2][kDepth];
  for (int k = 0; k < kDepth; ++k) {
    const std::byte* box = boxes + static_cast<size_t>(lane() / 4 * 4 + k % 8 / 2) * host::Warp::kBox;
    for (int i = 0; i < 2; ++i) {
      uint16_t value;
      std::memcpy(&value, box + (k / 8 * 2 + i) * 4 + k % 2 * 2, sizeof value);
      rows[i][k] = f16_to_f32(value);
    }
  }
  for (int j = 0; j < kCount / 4; ++j) {
    for (int i = 0; i < 2; ++i) {
      float low = 0, high = 0;
      for (int k = 0; k < kDepth; ++k) {
        uint16_t value;
        std::memcpy(&value, b + at(j, k / 8, lane() % 4 * 2 + i) + k % 8 * 2, sizeof value);
        const float x = f16_to_f32(value);
        low = low + rows[0][k] * x;
        high = high + rows[1][k] * x;
      }
      c[4 * j + i] = (fresh ? 0.0f : c[4 * j + i]) + low;
      c[4 * j + 2 + i] = (fresh ? 0.0f : c[4 * j + 2 + i]) + high;
      assert(magnitude(c[4 * j + i]) < 0x1p24f && magnitude(c[4 * j + 2 + i]) < 0x1p24f);
    }
  }
}
template <int kRows, int kCount>
JUNO_GPU void multiply(float (&c)[kCount], const uint32_t (&a)[4], const unsigned char* b, int first,
                       int piece, bool fresh) {
  multiply_columns<16>(
      c, a, b, [&](int group, int i, int row) { return piece_at(kRows, first + 8 * group + row, piece + i); },
      fresh);
}
template <int kCount>
JUNO_GPU void multiply_half(float (&c)[kCount], const uint32_t (&a)[2], const unsigned char* b) {
  const uint32_t whole[4] = {a[0], a[1], 0, 0};
  multiply_columns<8>(
      c, whole, b, [](int group, int, int row) { return group * 128 + row * 16; }, true);
}

}  // namespace juno::gpu
