// SPDX-License-Identifier: Apache-2.0
// The vocabulary of AMX for bytes: that of AVX-512, and products of whole tiles, 16 rows of activations times
// 16 weight rows.
#pragma once
#include "backend/cpu/vec/isa_avx512_panel.h"

#if defined(__AMX_INT8__)

#define JUNO_SQUARES 1

namespace juno::cpu {
namespace {

inline constexpr int kSquare = 16;  // activation rows of a tile of sums
static_assert(kPanelRows == 16);

// Tiles 0 and 1 hold sums, 2 activations, 3 and 4 weights; kDepth elements are multiplied at a time. No guard
// object: its destructor would lend the object a weak symbol for exceptions.
template <int kDepth>
JUNO_BOTH void open_squares() {
  struct {
    uint8_t palette = 1, start = 0, none[14] = {};
    uint16_t row_bytes[16] = {64, 64, kDepth, 64, 64};
    uint8_t rows[16] = {kSquare, kSquare, kSquare, kDepth / 4, kDepth / 4};
  } shapes;
  static_assert(sizeof shapes == 64);
  asm volatile("" : : "r"(&shapes) : "memory");  // the words for tiles do not say that they read memory
  _tile_loadconfig(&shapes);
}
JUNO_BOTH void close_squares() { _tile_release(); }

// to[plane][16][16]: sums of kSize products of 16 rows x, `stride` bytes apart, and a panel's bytes q, which
// are unsigned or, of two planes, signed: w = first + 128 second.
template <int kPlanes, int kSize, bool kSigned>
JUNO_BOTH void multiply_square(const std::byte* x, int64_t stride, const std::byte* q, int64_t plane,
                               int32_t* to) {
  constexpr int kDepth = kSize < 64 ? kSize : 64;
  asm volatile("" : : : "memory");
  _tile_zero(0);
  if constexpr (kPlanes == 2) _tile_zero(1);
#pragma GCC unroll 2
  for (int i = 0; i < kSize; i += kDepth) {
    _tile_loadd(2, x + i, stride);
    _tile_loadd(3, q + i * kPanelRows, 64);
    if constexpr (kSigned) _tile_dpbssd(0, 2, 3);
    else _tile_dpbsud(0, 2, 3);
    if constexpr (kPlanes == 2) {
      _tile_loadd(4, q + plane + i * kPanelRows, 64);
      _tile_dpbssd(1, 2, 4);
    }
  }
  _tile_stored(0, to, 64);
  if constexpr (kPlanes == 2) _tile_stored(1, to + kSquare * kPanelRows, 64);
}

// A row's sub-scale beside each of its four bytes, in 16 bits.
struct WideScale {
  __m512i low, high;  // of the first eight rows, of the others
};
JUNO_BOTH WideScale widen_scale(Scale s) {
  const __m512i v = _mm512_cvtps_epi32(s);
  const __m512i both = _mm512_or_si512(both_bits(v, all_ints(0xffff)), up32<16>(v));
  const __m512i first = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return {_mm512_permutexvar_epi32(first, both),
          _mm512_permutexvar_epi32(_mm512_add_epi32(first, all_ints(8)), both)};
}
// (v - offset) times sub-scale as signed bytes of one or two planes.
template <int kPlanes>
JUNO_BOTH void store_scaled(Bytes v, int offset, const WideScale& s, std::byte* to, int64_t plane) {
  const __m512i bytes = _mm512_sub_epi8(v, all_bytes(offset));
  const __m512i low = _mm512_mullo_epi16(_mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes)), s.low);
  const __m512i high = _mm512_mullo_epi16(_mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(bytes, 1)), s.high);
  const auto narrow = [](__m512i a, __m512i b) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(a)), _mm512_cvtepi16_epi8(b), 1);
  };
  if constexpr (kPlanes == 1) {
    store_bytes(to, narrow(low, high));
  } else {
    const __m512i seven = _mm512_set1_epi16(127);
    store_bytes(to, narrow(_mm512_and_si512(low, seven), _mm512_and_si512(high, seven)));
    store_bytes(to + plane, narrow(_mm512_srai_epi16(low, 7), _mm512_srai_epi16(high, 7)));
  }
}

}  // namespace
}  // namespace juno::cpu

#endif
