// SPDX-License-Identifier: Apache-2.0
// Layouts of the formats in blocks of 256: quants by the cell, scales by the block. Included by layout.h.
#pragma once
#include "backend/gpu/kernels/layout.h"

namespace juno::gpu {

// Bytes of the cells from `cell` on, of eight words 4 * word … each byte one cell's; the rest is unused.
JUNO_GPU uint32_t from_byte(uint32_t word, int byte) { return word >> (8 * byte); }
// Of 8 bytes, two a cell, those from cell `cell` of 4 on.
JUNO_GPU void from_cell(Pair32& bytes, int cell) {
  if (cell & 2) bytes.x[0] = bytes.x[1];
  if (cell & 1) bytes.x[0] >>= 16;
}

// ---- Q4_K, Q5_K: a header of 16 bytes: d, dmin; then byte j of word 1 + half: scale 4·half + j in six bits,
// the minimum's upper two above them; word 3: the lower four bits of the minima, those of half 1 in upper
// nibbles.
template <class F>
struct Of256 {
  static constexpr bool kTakenApart = true;
  static constexpr SubScales kSub = SubScales::kFor32;
  static constexpr int kOffset = 0;
  using Block = typename F::Block;
  using Head = Quad32;
  JUNO_BOTH static void put_header(const Block& b, uint8_t* to) {
    put16(b.d, to);
    put16(b.dmin, to + 2);
    for (int j = 0; j < 8; ++j)
      to[4 + j] = static_cast<uint8_t>(quant::scale6(b.scales, j) | quant::min6(b.scales, j) >> 4 << 6);
    for (int j = 0; j < 4; ++j)
      to[12 + j] =
          static_cast<uint8_t>((quant::min6(b.scales, j) & 15) | (quant::min6(b.scales, 4 + j) & 15) << 4);
  }
  JUNO_GPU static Scales from_header(const Quad32& h, int cell) {
    const bool second = (cell & 4) != 0;
    const uint32_t both = second ? h.x[2] : h.x[1], minima = second ? h.x[3] >> 4 : h.x[3];
    const uint32_t s = both & 0x3f3f3f3fu, u = (minima & 0x0f0f0f0fu) | (both >> 2 & 0x30303030u);
    return {.s = {from_byte(s, cell & 3), 0},
            .u = {from_byte(u, cell & 3), 0},
            .d = half_to_float(static_cast<uint16_t>(h.x[0])),
            .m = -half_to_float(static_cast<uint16_t>(h.x[0] >> 16))};
  }
};

template <>
struct Layout<quant::Q4_K> : Of256<quant::Q4_K> {
  using F = quant::Q4_K;
  JUNO_BOTH static constexpr Planes planes() { return {2, {{16, 32}, {16, 256}}}; }
  struct Raw {
    Quad32 q;
  };
  JUNO_BOTH static void put(const Block& b, int plane, int cell, uint8_t* to) {
    if (plane == 1) return put_header(b, to);
    put_nibbles([&](int i) { return quant::nibble64(b.q, cell * kCell + i); }, to);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P& p, int cell) {
    return constant16(unit<F, 1>(p, cell / 8));
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) { take_nibbles(r.q, w); }
  JUNO_GPU static Scales scales(const Head& h, const Raw&, int cell) { return from_header(h, cell); }
};

template <>
struct Layout<quant::Q5_K> : Of256<quant::Q5_K> {
  using F = quant::Q5_K;
  JUNO_BOTH static constexpr Planes planes() { return {3, {{16, 32}, {4, 32}, {16, 256}}}; }
  struct Raw {
    Quad32 q;
    uint32_t high;
  };
  JUNO_BOTH static void put(const Block& b, int plane, int cell, uint8_t* to) {
    if (plane == 2) return put_header(b, to);
    if (plane == 1) return put_bits([&](int i) { return quant::bit256(b.high, cell * kCell + i); }, to);
    put_nibbles([&](int i) { return quant::nibble64(b.q, cell * kCell + i); }, to);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell)), constant4(unit<F, 1>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P& p, int cell) {
    return constant16(unit<F, 2>(p, cell / 8));
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) {
    take_nibbles(r.q, w);
    add_bits<4>(r.high, w);
  }
  JUNO_GPU static Scales scales(const Head& h, const Raw&, int cell) { return from_header(h, cell); }
};

// Signed sub-scales of a byte for each 16.
struct Head16 {
  Pair32 s;
  uint16_t d;
};
template <class F, int kOffsetOfQ>
struct Signed16 {
  static constexpr bool kTakenApart = true;
  static constexpr SubScales kSub = SubScales::kFor16;
  static constexpr int kOffset = kOffsetOfQ;
  using Block = typename F::Block;
  using Head = Head16;
  template <class P>
  JUNO_GPU static Head load_head(const P& p, int cell) {
    return {constant8(unit<F, 2>(p, cell / 8) + (cell & 4) * 2), constant2(unit<F, 3>(p, cell / 8))};
  }
  JUNO_GPU static Scales from_head(Head h, int cell) {
    from_cell(h.s, cell & 3);
    return {.s = {h.s.x[0], h.s.x[1]}, .d = half_to_float(h.d)};
  }
};

template <>
struct Layout<quant::Q6_K> : Signed16<quant::Q6_K, 32> {
  using F = quant::Q6_K;
  JUNO_BOTH static constexpr Planes planes() { return {4, {{16, 32}, {8, 32}, {16, 256}, {2, 256}}}; }
  struct Raw {
    Quad32 q;
    Pair32 high;
  };
  JUNO_BOTH static void put(const Block& b, int plane, int cell, uint8_t* to) {
    const auto q = [&](int i) { return F::q(b, cell * kCell + i) + 32; };
    if (plane == 0) return put_nibbles(q, to);
    if (plane == 1) return put_pairs([&](int i) { return q(i) >> 4; }, to);
    if (plane == 3) return put16(b.d, to);
    for (int j = 0; j < 16; ++j) to[j] = static_cast<uint8_t>(b.scales[j]);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell)), constant8(unit<F, 1>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P& p, int cell) {
    return load_head(p, cell);
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) {
    take_nibbles(r.q, w);
    add_pairs<4>(r.high, w);
  }
  JUNO_GPU static Scales scales(const Head& h, const Raw&, int cell) { return from_head(h, cell); }
};

template <>
struct Layout<quant::Q3_K> : Signed16<quant::Q3_K, 4> {
  using F = quant::Q3_K;
  JUNO_BOTH static constexpr Planes planes() { return {4, {{8, 32}, {4, 32}, {16, 256}, {2, 256}}}; }
  struct Raw {
    Pair32 q;
    uint32_t high;
  };
  JUNO_BOTH static void put(const Block& b, int plane, int cell, uint8_t* to) {
    if (plane == 0) return put_pairs([&](int i) { return quant::pair128(b.q, cell * kCell + i); }, to);
    if (plane == 1) return put_bits([&](int i) { return quant::bit256(b.high, cell * kCell + i); }, to);
    if (plane == 3) return put16(b.d, to);
    for (int j = 0; j < 16; ++j) to[j] = static_cast<uint8_t>(F::s(b, j));
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {constant8(unit<F, 0>(p, cell)), constant4(unit<F, 1>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P& p, int cell) {
    return load_head(p, cell);
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) {
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) w[i] = 0;
    add_pairs<0>(r.q, w);
    add_bits<2>(r.high, w);
  }
  JUNO_GPU static Scales scales(const Head& h, const Raw&, int cell) { return from_head(h, cell); }
};

// The others.
template <>
struct Layout<quant::Q2_K> {
  using F = quant::Q2_K;
  using Block = F::Block;
  static constexpr bool kTakenApart = true;
  static constexpr SubScales kSub = SubScales::kFor16;
  static constexpr int kOffset = 0;
  JUNO_BOTH static constexpr Planes planes() { return {3, {{8, 32}, {16, 256}, {4, 256}}}; }
  struct Raw {
    Pair32 q;
  };
  struct Head {
    Pair32 su;  // scales in low nibbles, minima in high ones
    uint32_t dm;
  };
  JUNO_BOTH static void put(const Block& b, int plane, int cell, uint8_t* to) {
    if (plane == 0) return put_pairs([&](int i) { return quant::pair128(b.q, cell * kCell + i); }, to);
    if (plane == 1) {
      for (int j = 0; j < 16; ++j) to[j] = b.scales[j];
      return;
    }
    put16(b.d, to);
    put16(b.dmin, to + 2);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {constant8(unit<F, 0>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P& p, int cell) {
    return {constant8(unit<F, 1>(p, cell / 8) + (cell & 4) * 2), constant4(unit<F, 2>(p, cell / 8))};
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) {
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) w[i] = 0;
    add_pairs<0>(r.q, w);
  }
  JUNO_GPU static Scales scales(Head h, const Raw&, int cell) {
    from_cell(h.su, cell & 3);
    return {.s = {h.su.x[0] & 0x0f0f0f0fu, h.su.x[1] & 0x0f0f0f0fu},
            .u = {h.su.x[0] >> 4 & 0x0f0f0f0fu, h.su.x[1] >> 4 & 0x0f0f0f0fu},
            .d = half_to_float(static_cast<uint16_t>(h.dm)),
            .m = -half_to_float(static_cast<uint16_t>(h.dm >> 16))};
  }
};

template <>
struct Layout<quant::IQ4_XS> {
  using F = quant::IQ4_XS;
  using Block = F::Block;
  static constexpr bool kTakenApart = true;
  static constexpr SubScales kSub = SubScales::kFor32;
  static constexpr int kOffset = 0;
  JUNO_BOTH static constexpr Planes planes() { return {3, {{16, 32}, {8, 256}, {2, 256}}}; }
  struct Raw {
    Quad32 q;
  };
  struct Head {
    uint32_t s;
    uint16_t d;
  };
  JUNO_BOTH static void put(const Block& b, int plane, int cell, uint8_t* to) {
    if (plane == 0) return put_choices([&](int i) { return quant::nibble32(b.q + cell * 16, i); }, to);
    if (plane == 2) return put16(b.d, to);
    for (int j = 0; j < 8; ++j) to[j] = static_cast<uint8_t>(F::s(b, j));
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P& p, int cell) {
    return {constant4(unit<F, 1>(p, cell / 8) + (cell & 4)), constant2(unit<F, 2>(p, cell / 8))};
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) { take_iq4(r.q, w); }
  JUNO_GPU static Scales scales(const Head& h, const Raw&, int cell) {
    return {.s = {from_byte(h.s, cell & 3), 0}, .d = half_to_float(h.d)};
  }
};

template <>
struct Layout<quant::TQ2_0> {
  using F = quant::TQ2_0;
  using Block = F::Block;
  static constexpr bool kTakenApart = true;
  static constexpr SubScales kSub = SubScales::kNone;
  static constexpr int kOffset = 1;
  JUNO_BOTH static constexpr Planes planes() { return {2, {{8, 32}, {2, 256}}}; }
  struct Raw {
    Pair32 q;
  };
  using Head = uint32_t;
  JUNO_BOTH static void put(const Block& b, int plane, int cell, uint8_t* to) {
    if (plane == 1) return put16(b.d, to);
    put_pairs([&](int i) { return quant::pair128(b.q, cell * kCell + i); }, to);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {constant8(unit<F, 0>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P& p, int cell) {
    return constant2(unit<F, 1>(p, cell / 8));
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) {
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) w[i] = 0;
    add_pairs<0>(r.q, w);
  }
  JUNO_GPU static Scales scales(const Head& h, const Raw&, int) {
    return one_scale(static_cast<uint16_t>(h));
  }
};

}  // namespace juno::gpu
