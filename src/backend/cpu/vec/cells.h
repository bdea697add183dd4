// SPDX-License-Identifier: Apache-2.0
// How each format's file bytes become cells: 32 elements as bytes, of kPair rows at once. An unsigned cell
// holds v/scale + offset; sub-scales and minima come apart. Included by the files of vec/ only.
#pragma once
#include <cstddef>

#include "backend/cpu/vec/vocabulary.h"
#include "quant/formats.h"

#if defined(JUNO_WIDE)

namespace juno::cpu {
namespace {

// Formats with a scale for each 32: a block is a cell.
struct SignedCell {
  static constexpr bool is_signed = true;
  static constexpr int bits = 8, offset = kSignedOffset;
};
template <int kBits, int kOffset>
struct UnsignedCell {
  static constexpr bool is_signed = false;
  static constexpr int bits = kBits, offset = kOffset;
};

inline constexpr int8_t kIq4Table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr int8_t kMxfp4Table[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

template <class F>
struct Cells;

template <>
struct Cells<quant::Q8_0> : SignedCell {
  JUNO_BOTH static Bytes get(Rows w) { return bytes32(w, 2); }
};
template <>
struct Cells<quant::Q4_0> : UnsignedCell<4, 8> {
  JUNO_BOTH static Bytes get(Rows w) { return halves(bytes16(w, 2)); }
};
template <>
struct Cells<quant::Q4_1> : UnsignedCell<4, 0> {
  JUNO_BOTH static Bytes get(Rows w) { return halves(bytes16(w, 4)); }
};
template <>
struct Cells<quant::Q5_0> : UnsignedCell<5, 16> {
  JUNO_BOTH static Bytes get(Rows w) { return with_bit5(halves(bytes16(w, 6)), w, 2); }
};
template <>
struct Cells<quant::Q5_1> : UnsignedCell<5, 0> {
  JUNO_BOTH static Bytes get(Rows w) { return with_bit5(halves(bytes16(w, 8)), w, 4); }
};
template <>
struct Cells<quant::IQ4_NL> : SignedCell {
  JUNO_BOTH static Bytes get(Rows w) { return look_up(table16(kIq4Table), halves(bytes16(w, 2))); }
};
template <>
struct Cells<quant::MXFP4> : UnsignedCell<5, 12> {
  JUNO_BOTH static Bytes get(Rows w) { return look_up(table16(kMxfp4Table), halves(bytes16(w, 1))); }
};

// Formats in blocks of 256: cell c of 8, kSub elements under one sub-scale.
template <int kSub, int kBits, int kOffset>
struct ScaledCell : UnsignedCell<kBits, kOffset> {
  static constexpr int sub = kSub;
};

// Sub-scales and minima come eight bytes to a word, the first in its lowest byte.
using Eight = uint64_t;
JUNO_BOTH Eight in_all(int byte) { return static_cast<Eight>(byte) * 0x0101010101010101u; }
JUNO_BOTH Eight load_eight(const void* from) {
  Eight word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
JUNO_BOTH Eight eight(uint32_t low, uint32_t high) { return static_cast<Eight>(high) << 32 | low; }

// Six bits each, from twelve bytes (quant/bits.h, scale6 and min6).
JUNO_BOTH void scales6(const uint8_t* from, Eight* s, Eight* u) {
  uint32_t w[3];
  std::memcpy(w, from, sizeof w);
  s[0] = eight(w[0] & 0x3f3f3f3fu, (w[2] & 0x0f0f0f0fu) | (w[0] >> 2 & 0x30303030u));
  u[0] = eight(w[1] & 0x3f3f3f3fu, (w[2] >> 4 & 0x0f0f0f0fu) | (w[1] >> 2 & 0x30303030u));
}
// Six bits less 32: the highest of them is the sign.
JUNO_BOTH Eight signed6(Eight v) {
  const Eight low = v ^ in_all(0x20), sign = low & in_all(0x20);
  return low | sign << 1 | sign << 2;
}

template <>
struct Cells<quant::Q4_K> : ScaledCell<32, 4, 0> {
  JUNO_BOTH static Bytes get(Rows w, unsigned c) {
    return both_bits(down(bytes32(w, 16 + c / 2 * 32), c % 2 * 4), all_bytes(15));
  }
  JUNO_BOTH static void scales(const quant::Q4_K::Block& b, Eight* s, Eight* u) { scales6(b.scales, s, u); }
};
template <>
struct Cells<quant::Q5_K> : ScaledCell<32, 5, 0> {
  JUNO_BOTH static Bytes get(Rows w, unsigned c) {
    const Bytes low = both_bits(down(bytes32(w, 48 + c / 2 * 32), c % 2 * 4), all_bytes(15));
    return either_bits(low, up<4>(both_bits(down(bytes32(w, 16), c), all_bytes(1))));
  }
  JUNO_BOTH static void scales(const quant::Q5_K::Block& b, Eight* s, Eight* u) { scales6(b.scales, s, u); }
};
template <>
struct Cells<quant::Q6_K> : ScaledCell<16, 6, 32> {
  JUNO_BOTH static Bytes get(Rows w, unsigned c) {
    const Bytes low = down(bytes32(w, c / 4 * 64 + c % 2 * 32), c % 4 / 2 * 4);
    const Bytes high = down(bytes32(w, 128 + c / 4 * 32), c % 4 * 2);
    return either_bits(both_bits(low, all_bytes(15)), up<4>(both_bits(high, all_bytes(3))));
  }
  JUNO_BOTH static void scales(const quant::Q6_K::Block& b, Eight* s, Eight*) {
    for (int i = 0; i < 2; ++i) s[i] = load_eight(b.scales + 8 * i);
  }
};
template <>
struct Cells<quant::Q2_K> : ScaledCell<16, 2, 0> {
  JUNO_BOTH static Bytes get(Rows w, unsigned c) {
    return both_bits(down(bytes32(w, 16 + c / 4 * 32), c % 4 * 2), all_bytes(3));
  }
  JUNO_BOTH static void scales(const quant::Q2_K::Block& b, Eight* s, Eight* u) {
    for (int i = 0; i < 2; ++i) {
      const Eight both = load_eight(b.scales + 8 * i);
      s[i] = both & in_all(15);
      u[i] = both >> 4 & in_all(15);
    }
  }
};
template <>
struct Cells<quant::Q3_K> : ScaledCell<16, 3, 4> {
  JUNO_BOTH static Bytes get(Rows w, unsigned c) {
    const Bytes low = both_bits(down(bytes32(w, 32 + c / 4 * 32), c % 4 * 2), all_bytes(3));
    return either_bits(low, up<2>(both_bits(down(bytes32(w, 0), c), all_bytes(1))));
  }
  // The low four bits of eight scales lie in the low halves of eight bytes, of the next eight in the high
  // halves; the high bits of four scales lie in the same two bits of four bytes.
  JUNO_BOTH static void scales(const quant::Q3_K::Block& b, Eight* s, Eight*) {
    uint32_t high;
    std::memcpy(&high, b.scales + 8, sizeof high);
    const Eight low = load_eight(b.scales);
    for (int i = 0; i < 2; ++i) {
      const Eight top = eight(high >> (4 * i) & 0x03030303u, high >> (4 * i + 2) & 0x03030303u);
      s[i] = signed6((low >> (4 * i) & in_all(15)) | top << 4);
    }
  }
};
template <>
struct Cells<quant::TQ2_0> : ScaledCell<16, 2, 1> {
  JUNO_BOTH static Bytes get(Rows w, unsigned c) {
    return both_bits(down(bytes32(w, c / 4 * 32), c % 4 * 2), all_bytes(3));
  }
  JUNO_BOTH static void scales(const quant::TQ2_0::Block&, Eight* s, Eight*) { s[0] = s[1] = in_all(1); }
};
template <>
struct Cells<quant::IQ4_XS> {
  static constexpr bool is_signed = true;
  static constexpr int bits = 8, offset = 0, sub = 32;
  JUNO_BOTH static Bytes get(Rows w, unsigned c) {
    return look_up(table16(kIq4Table), halves(bytes16(w, 8 + c * 16)));
  }
  JUNO_BOTH static void scales(const quant::IQ4_XS::Block& b, Eight* s, Eight*) {
    s[0] = 0;
    for (int j = 0; j < 8; ++j)
      s[0] |= static_cast<Eight>(static_cast<uint8_t>(quant::IQ4_XS::s(b, j))) << (8 * j);
  }
};

// Others run on the general kernels of linear.h.
template <class F>
concept HasCells = requires {
  Cells<F>::is_signed;
};

// Where a format keeps its f16 minimum; d as f16, where it does.
template <class F>
concept HalfScale = requires(const typename F::Block& b) {
  { b.d } -> std::convertible_to<uint16_t>;
};
template <class F>
JUNO_BOTH uint16_t half_minimum(const typename F::Block& b) {
  if constexpr (requires { b.dmin; }) return b.dmin;
  else return b.m;
}
// Where d and the minimum are, side by side.
template <quant::HasMin F>
constexpr int scales_at() {
  constexpr int at = offsetof(typename F::Block, d);
  if constexpr (requires(typename F::Block b) { b.dmin; })
    static_assert(offsetof(typename F::Block, dmin) == at + 2);
  else static_assert(offsetof(typename F::Block, m) == at + 2);
  return at;
}
template <quant::HasMin F>
inline constexpr int kScales = scales_at<F>();
// k-quants subtract their minimum.
template <class F>
inline constexpr bool kNegativeMinimum = F::block_size == 256;

template <class F>
JUNO_BOTH Bytes cell(Rows w, unsigned c) {
  if constexpr (F::block_size == 32) return Cells<F>::get(w);
  else return Cells<F>::get(w, c);
}

// The largest byte of a cell.
template <class F>
inline constexpr int kLargestByte = (1 << Cells<F>::bits) - 1;

}  // namespace
}  // namespace juno::cpu

#endif

namespace juno::cpu {
namespace {

// What FormatKernels says of a format.
template <class F>
constexpr bool has_cells() {
#if defined(JUNO_WIDE)
  return HasCells<F>;
#else
  return false;
#endif
}
template <class F>
constexpr int cell_of() {
#if defined(JUNO_WIDE)
  if constexpr (F::block_size == 256 && HasCells<F>) return Cells<F>::sub;
#endif
  return 32;
}

}  // namespace
}  // namespace juno::cpu
