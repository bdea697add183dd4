// SPDX-License-Identifier: Apache-2.0
// What of each weight format lies where on the device (repack.h), and how a cell of 32 elements is taken
// apart again: eight words of four signed bytes q, a sub-scale for all or for each 16 of them, and an offset:
//   v = scale · (q − offset)
// A format without a Layout of its own keeps its blocks as they are and is multiplied element by element.
#pragma once
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/gpu.h"
#include "quant/formats.h"

namespace juno::gpu {

inline constexpr int kStrip = 4;  // rows side by side
inline constexpr int kCell = 32;  // elements
inline constexpr int kMaxPlanes = 4;

// `bytes` for each `elements` of a row.
struct Plane {
  int bytes = 0, elements = 1;
};

enum class SubScales { kNone, kFor32, kFor16 };

// Of up to four cells that share an activation block. kFor32: byte j is cell j's; kFor16: bytes 2j and 2j + 1
// are.
struct Scales {
  uint32_t s[2] = {}, u[2] = {};
  float d = 0, m = 0;
};

struct Planes {
  int count;
  Plane at[kMaxPlanes];
};

// One lane's view of a matrix: for each plane the first unit of its row.
struct LanePlanes {
  const uint8_t* at[kMaxPlanes];
};

template <class F>
struct Layout {  // blocks as they are
  static constexpr bool kTakenApart = false;
  JUNO_BOTH static constexpr Planes planes() { return {1, {{sizeof(typename F::Block), F::block_size}}}; }
  JUNO_BOTH static void put(const typename F::Block& b, int, int, uint8_t* to) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&b);
    for (size_t i = 0; i < sizeof b; ++i) to[i] = bytes[i];
  }
};

template <class F>
inline constexpr int kPlaneCount = Layout<F>::planes().count;

JUNO_BOTH constexpr uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// Where plane p of a [rows, cols] matrix begins; p = kPlaneCount is the size of all.
template <class F>
JUNO_BOTH constexpr uint64_t plane_offset(int p, int64_t rows, int64_t cols) {
  uint64_t at = 0;
  for (int i = 0; i < p; ++i) {
    const Plane plane = Layout<F>::planes().at[i];
    at += round_up(round_up(static_cast<uint64_t>(rows), kStrip) *
                       static_cast<uint64_t>(cols / plane.elements) * static_cast<uint64_t>(plane.bytes),
                   256);
  }
  return at;
}

// Row `row` of plane p; its unit i is kStrip * bytes * i further.
template <class F>
JUNO_BOTH uint64_t row_offset(int p, int64_t rows, int64_t cols, int64_t row) {
  const Plane plane = Layout<F>::planes().at[p];
  const int64_t units = cols / plane.elements;
  return plane_offset<F>(p, rows, cols) +
         static_cast<uint64_t>((row / kStrip * units * kStrip + row % kStrip) * plane.bytes);
}

// All planes' offsets are constants times numbers of cells, so they are worked out without arrays, which a
// GPU would put into memory.
template <class F, int p = 0>
JUNO_BOTH void set_planes(LanePlanes& to, const uint8_t* plane, uint64_t strips, int64_t cols, int64_t row) {
  if constexpr (p < kPlaneCount<F>) {
    constexpr Plane kPlane = Layout<F>::planes().at[p];
    const uint64_t strip_bytes = static_cast<uint64_t>(cols / kPlane.elements) * (kStrip * kPlane.bytes);
    to.at[p] = plane + static_cast<uint64_t>(row / kStrip) * strip_bytes + row % kStrip * kPlane.bytes;
    set_planes<F, p + 1>(to, plane + round_up(strips * strip_bytes, 256), strips, cols, row);
  }
}
template <class F>
JUNO_BOTH LanePlanes lane_planes(const uint8_t* matrix, int64_t rows, int64_t cols, int64_t row) {
  LanePlanes planes = {};
  set_planes<F>(planes, matrix, (static_cast<uint64_t>(rows) + kStrip - 1) / kStrip, cols, row);
  return planes;
}

// Unit i of plane p in a lane's row.
template <class F, int p>
JUNO_BOTH const uint8_t* unit(const LanePlanes& planes, int i) {
  constexpr int kBytes = kStrip * Layout<F>::planes().at[p].bytes;
  return planes.at[p] + static_cast<int64_t>(i) * kBytes;
}

// How quants are packed.
// `q(i)` is element i of the cell, without its offset, below 2^4, 2^5 …

// 4 bits: byte j holds elements j and 16 + j.
template <class Q>
JUNO_BOTH void put_nibbles(Q&& q, uint8_t* to) {
  for (int j = 0; j < 16; ++j) to[j] = static_cast<uint8_t>((q(j) & 15) | (q(16 + j) & 15) << 4);
}
JUNO_GPU void take_nibbles(const Quad32& x, uint32_t (&w)[8]) {
  JUNO_UNROLL
  for (int i = 0; i < 4; ++i) {
    w[i] = x.x[i] & 0x0f0f0f0fu;
    w[4 + i] = x.x[i] >> 4 & 0x0f0f0f0fu;
  }
}

// One bit more: bit i of byte j is that of element 4i + j.
template <class Q>
JUNO_BOTH void put_bits(Q&& bit, uint8_t* to) {
  for (int j = 0; j < 4; ++j) {
    int byte = 0;
    for (int i = 0; i < 8; ++i) byte |= (bit(4 * i + j) & 1) << i;
    to[j] = static_cast<uint8_t>(byte);
  }
}
template <int kPlace>
JUNO_GPU void add_bits(uint32_t h, uint32_t (&w)[8]) {
  JUNO_UNROLL
  for (int i = 0; i < 8; ++i)
    w[i] |= (i < kPlace ? h << (kPlace - i) : h >> (i - kPlace)) & (0x01010101u << kPlace);
}

// 2 bits: bits 2i and 2i + 1 of byte j of half c are those of element 16c + 4i + j.
template <class Q>
JUNO_BOTH void put_pairs(Q&& q, uint8_t* to) {
  for (int c = 0; c < 2; ++c) {
    for (int j = 0; j < 4; ++j) {
      int byte = 0;
      for (int i = 0; i < 4; ++i) byte |= (q(16 * c + 4 * i + j) & 3) << (2 * i);
      to[4 * c + j] = static_cast<uint8_t>(byte);
    }
  }
}
template <int kPlace>
JUNO_GPU void add_pairs(const Pair32& h, uint32_t (&w)[8]) {
  JUNO_UNROLL
  for (int i = 0; i < 8; ++i) {
    const uint32_t x = h.x[i / 4];
    const int shift = 2 * (i % 4) - kPlace;
    w[i] |= (shift < 0 ? x << -shift : x >> shift) & (0x03030303u << kPlace);
  }
}

// 4 bits that choose from a table of bytes: nibble k of word i is element 4i + k, nibble 4 + k element 16 +
// 4i + k.
template <class Q>
JUNO_BOTH void put_choices(Q&& q, uint8_t* to) {
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 4; ++k)
      to[4 * i + k] = static_cast<uint8_t>((q(k / 2 * 16 + 4 * i + k % 2 * 2) & 15) |
                                           (q(k / 2 * 16 + 4 * i + k % 2 * 2 + 1) & 15) << 4);
}
JUNO_GPU uint32_t choose(const uint32_t (&table)[4], uint32_t choices) {
  const uint32_t three_bits = choices & 0x7777u;
  const uint32_t low = bytes_of(table[0], table[1], three_bits),
                 high = bytes_of(table[2], table[3], three_bits);
  return bytes_of(low, high, 0x3210u | (choices & 0x8888u) >> 1);
}
JUNO_GPU void take_choices(const uint32_t (&table)[4], const Quad32& x, uint32_t (&w)[8]) {
  JUNO_UNROLL
  for (int i = 0; i < 4; ++i) {
    w[i] = choose(table, x.x[i]);
    w[4 + i] = choose(table, x.x[i] >> 16);
  }
}

// quant::iq4_value(0 … 15), four to a word.
JUNO_GPU void take_iq4(const Quad32& x, uint32_t (&w)[8]) {
  const uint32_t table[4] = {0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u};
  take_choices(table, x, w);
}

JUNO_BOTH void put16(uint16_t x, uint8_t* to) {
  to[0] = static_cast<uint8_t>(x);
  to[1] = static_cast<uint8_t>(x >> 8);
}

// Formats with a scale for 32.
template <class F, int kOffsetOfQ>
struct Of32 {
  static constexpr bool kTakenApart = true;
  static constexpr SubScales kSub = SubScales::kNone;
  static constexpr int kOffset = kOffsetOfQ;
};
JUNO_GPU Scales one_scale(uint16_t d) { return {.d = half_to_float(d)}; }
JUNO_GPU Scales scale_and_minimum(uint32_t dm) {
  return {.u = {0x01010101u, 0},
          .d = half_to_float(static_cast<uint16_t>(dm)),
          .m = half_to_float(static_cast<uint16_t>(dm >> 16))};
}

template <>
struct Layout<quant::Q8_0> : Of32<quant::Q8_0, 0> {
  using Block = quant::Q8_0::Block;
  JUNO_BOTH static constexpr Planes planes() { return {3, {{16, 32}, {16, 32}, {2, 32}}}; }
  struct Raw {
    Quad32 low, high;
    uint16_t d;
  };
  using Head = Pair32;  // nothing
  JUNO_BOTH static void put(const Block& b, int plane, int, uint8_t* to) {
    if (plane == 2) return put16(b.d, to);
    for (int i = 0; i < 16; ++i) to[i] = static_cast<uint8_t>(b.q[plane * 16 + i]);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<quant::Q8_0, 0>(p, cell)), stream16(unit<quant::Q8_0, 1>(p, cell)),
            constant2(unit<quant::Q8_0, 2>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P&, int) {
    return {};
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) {
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) {
      w[i] = r.low.x[i];
      w[4 + i] = r.high.x[i];
    }
  }
  JUNO_GPU static Scales scales(const Head&, const Raw& first, int) { return one_scale(first.d); }
};

template <>
struct Layout<quant::Q4_0> : Of32<quant::Q4_0, 8> {
  using F = quant::Q4_0;
  using Block = F::Block;
  JUNO_BOTH static constexpr Planes planes() { return {2, {{16, 32}, {2, 32}}}; }
  struct Raw {
    Quad32 q;
    uint16_t d;
  };
  using Head = Pair32;
  JUNO_BOTH static void put(const Block& b, int plane, int, uint8_t* to) {
    if (plane == 1) return put16(b.d, to);
    put_nibbles([&](int i) { return quant::nibble32(b.q, i); }, to);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell)), constant2(unit<F, 1>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P&, int) {
    return {};
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) { take_nibbles(r.q, w); }
  JUNO_GPU static Scales scales(const Head&, const Raw& first, int) { return one_scale(first.d); }
};

template <>
struct Layout<quant::Q4_1> : Of32<quant::Q4_1, 0> {
  using F = quant::Q4_1;
  using Block = F::Block;
  JUNO_BOTH static constexpr Planes planes() { return {2, {{16, 32}, {4, 32}}}; }
  struct Raw {
    Quad32 q;
    uint32_t dm;
  };
  using Head = Pair32;
  JUNO_BOTH static void put(const Block& b, int plane, int, uint8_t* to) {
    if (plane == 0) return put_nibbles([&](int i) { return quant::nibble32(b.q, i); }, to);
    put16(b.d, to);
    put16(b.m, to + 2);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell)), constant4(unit<F, 1>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P&, int) {
    return {};
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) { take_nibbles(r.q, w); }
  JUNO_GPU static Scales scales(const Head&, const Raw& first, int) { return scale_and_minimum(first.dm); }
};

template <>
struct Layout<quant::Q5_0> : Of32<quant::Q5_0, 16> {
  using F = quant::Q5_0;
  using Block = F::Block;
  JUNO_BOTH static constexpr Planes planes() { return {3, {{16, 32}, {4, 32}, {2, 32}}}; }
  struct Raw {
    Quad32 q;
    uint32_t high;
    uint16_t d;
  };
  using Head = Pair32;
  JUNO_BOTH static void put(const Block& b, int plane, int, uint8_t* to) {
    if (plane == 0) return put_nibbles([&](int i) { return quant::nibble32(b.q, i); }, to);
    if (plane == 1) return put_bits([&](int i) { return quant::bit(b.high, i); }, to);
    put16(b.d, to);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell)), constant4(unit<F, 1>(p, cell)), constant2(unit<F, 2>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P&, int) {
    return {};
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) {
    take_nibbles(r.q, w);
    add_bits<4>(r.high, w);
  }
  JUNO_GPU static Scales scales(const Head&, const Raw& first, int) { return one_scale(first.d); }
};

template <>
struct Layout<quant::Q5_1> : Of32<quant::Q5_1, 0> {
  using F = quant::Q5_1;
  using Block = F::Block;
  JUNO_BOTH static constexpr Planes planes() { return {3, {{16, 32}, {4, 32}, {4, 32}}}; }
  struct Raw {
    Quad32 q;
    uint32_t high, dm;
  };
  using Head = Pair32;
  JUNO_BOTH static void put(const Block& b, int plane, int, uint8_t* to) {
    if (plane == 0) return put_nibbles([&](int i) { return quant::nibble32(b.q, i); }, to);
    if (plane == 1) return put_bits([&](int i) { return quant::bit(b.high, i); }, to);
    put16(b.d, to);
    put16(b.m, to + 2);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell)), constant4(unit<F, 1>(p, cell)), constant4(unit<F, 2>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P&, int) {
    return {};
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) {
    take_nibbles(r.q, w);
    add_bits<4>(r.high, w);
  }
  JUNO_GPU static Scales scales(const Head&, const Raw& first, int) { return scale_and_minimum(first.dm); }
};

template <>
struct Layout<quant::IQ4_NL> : Of32<quant::IQ4_NL, 0> {
  using F = quant::IQ4_NL;
  using Block = F::Block;
  JUNO_BOTH static constexpr Planes planes() { return {2, {{16, 32}, {2, 32}}}; }
  struct Raw {
    Quad32 q;
    uint16_t d;
  };
  using Head = Pair32;
  JUNO_BOTH static void put(const Block& b, int plane, int, uint8_t* to) {
    if (plane == 1) return put16(b.d, to);
    put_choices([&](int i) { return quant::nibble32(b.q, i); }, to);
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell)), constant2(unit<F, 1>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P&, int) {
    return {};
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) { take_iq4(r.q, w); }
  JUNO_GPU static Scales scales(const Head&, const Raw& first, int) { return one_scale(first.d); }
};

template <>
struct Layout<quant::MXFP4> : Of32<quant::MXFP4, 0> {
  using F = quant::MXFP4;
  using Block = F::Block;
  JUNO_BOTH static constexpr Planes planes() { return {2, {{16, 32}, {1, 32}}}; }
  struct Raw {
    Quad32 q;
    uint8_t e;
  };
  using Head = Pair32;
  JUNO_BOTH static void put(const Block& b, int plane, int, uint8_t* to) {
    if (plane == 0) return put_choices([&](int i) { return quant::nibble32(b.q, i); }, to);
    *to = b.e;
  }
  template <class P>
  JUNO_GPU static Raw load(const P& p, int cell) {
    return {stream16(unit<F, 0>(p, cell)), constant1(unit<F, 1>(p, cell))};
  }
  template <class P>
  JUNO_GPU static Head head(const P&, int) {
    return {};
  }
  JUNO_GPU static void words(const Raw& r, uint32_t (&w)[8]) {
    const uint32_t table[4] = {0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu};
    take_choices(table, r.q, w);
  }
  JUNO_GPU static Scales scales(const Head&, const Raw& first, int) {
    Block b = {};
    b.e = first.e;
    return {.d = F::d(b)};
  }
};

}  // namespace juno::gpu

#include "backend/gpu/kernels/layout_k.h"
