// SPDX-License-Identifier: Apache-2.0
// How each format's file bytes become a panel: kPanelRows rows side by side, four elements of each in 32
// bits, as v/scale + offset; sub-scales and minima apart. Rows are turned before their bits are taken apart,
// while they are few. Included by the files of vec/ only.
#pragma once
#include <concepts>
#include <cstddef>

#include "backend/cpu/vec/vocabulary.h"
#include "quant/formats.h"

#if defined(JUNO_PANELS)

namespace juno::cpu {
namespace {

// The same block of kPanelRows rows: stride bytes apart, or turned (turned.h). Whatever is read, as much is
// asked for at `ahead`: in small portions, for a burst of requests would keep reads from the cache waiting
// behind it.
struct RawRows {
  const uint8_t* w;
  int64_t stride;
  const uint8_t* ahead;
  bool turned;
  // 16 bytes of each row, from byte `at` of the block on: dword i of all to[i].
  JUNO_BOTH void turn(int at, Bytes* to) const {
    if (turned) {
      const int first = at / 4 * 4 * kPanelRows;
#pragma GCC unroll 4
      for (int i = 0; i < 4 * 4 * kPanelRows; i += 4 * kPanelRows) {
        if (i % 64 == 0) __builtin_prefetch(ahead + first + i, 0, 3);
        to[i / (4 * kPanelRows)] = load_bytes(w + first + i);
      }
      return;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16 * kPanelRows; i += 64) __builtin_prefetch(ahead + at * kPanelRows + i, 0, 2);
    turn4(w + at, stride, to);
  }
};

// Where unpacked elements go: element i of a block, i a multiple of 4. Those of 32 come in an order in which
// no later one precedes an earlier one of the same run, so that PanelSums (panel_one.h) may be here as well.
template <int kWidth>
struct PanelQuads {
  std::byte* at;
  JUNO_BOTH void put(int i, Bytes v) const { store_quad(at + i * kPanelRows * kWidth, quad_of<kWidth>(v)); }
};

// Where sub-scales go: one vector of scales a cell; one of pairs for two neighbouring cells, or, where a
// block of activations is a single cell, one whose second number is 0.
template <bool kSingles>
struct PanelScales {
  std::byte *s, *u;
  template <int kCell, bool kSigned>
  JUNO_BOTH void put4(Ints bytes) const {
    store(kCell, scale_of<0, kSigned>(bytes));
    store(kCell + 1, scale_of<1, kSigned>(bytes));
    store(kCell + 2, scale_of<2, kSigned>(bytes));
    store(kCell + 3, scale_of<3, kSigned>(bytes));
  }
  template <int kCell, bool kSigned, int kShift>
  JUNO_BOTH void put4_pairs(Ints bytes) const {
    const Bytes pairs[] = {pair_of<0, kSigned, kShift>(bytes), pair_of<1, kSigned, kShift>(bytes)};
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      if constexpr (kSingles) {
        store_bytes(u + (kCell + 2 * i) * sizeof(Bytes), both_bits(pairs[i], all_ints(0xffff)));
        store_bytes(u + (kCell + 2 * i + 1) * sizeof(Bytes), down32<16>(pairs[i]));
      } else {
        store_bytes(u + (kCell / 2 + i) * sizeof(Bytes), pairs[i]);
      }
    }
  }
  JUNO_BOTH void store(int cell, Scale s_of) const { store_scale(s + cell * sizeof(Scale), s_of); }
};

// How a format's minimum looks: none, m alone, m times an integer for each cell.
enum class Minimum { kNone, kOne, kScaled };

template <int kCell, int kBits, int kOffset, bool kScaled, Minimum kMinimum>
struct RawFormat {
  static constexpr int cell = kCell, bits = kBits, offset = kOffset;
  static constexpr bool scaled = kScaled, is_signed = false;
  static constexpr Minimum minimum = kMinimum;
};

JUNO_BOTH Bytes low4(Bytes v) { return both_bits(v, all_bytes(15)); }
template <int kBits, int kMask>
JUNO_BOTH Bytes field(Bytes v) {
  return both_bits(down(v, kBits), all_bytes(kMask));
}

// 16 bytes of halves: elements 0 … 15 are the low ones.
template <class To, class Look>
JUNO_BOTH void put_halves(RawRows w, int at, To to, int first, Look&& look) {
  Bytes v[4];
  w.turn(at, v);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    to.put(first + 4 * i, look(low4(v[i])));
    to.put(first + 16 + 4 * i, look(field<4, 15>(v[i])));
  }
}

template <class F>
struct Raw;

// Formats without one run on the general kernels of linear.h.
template <class F>
concept HasRaw = requires {
  Raw<F>::cell;
};

// Formats that keep d as f16.
template <class F>
concept HalfScale = requires(const typename F::Block& b) {
  { b.d } -> std::convertible_to<uint16_t>;
};
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

// Blocks of 32: a cell is a block; `fifths` are the dwords of fifth bits, gathered before.
template <int kOffset, Minimum kMinimum, int kQ>
struct RawHalves : RawFormat<32, 4, kOffset, false, kMinimum> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
    put_halves(w, kQ, to, 0, [](Bytes v) { return v; });
  }
};
template <>
struct Raw<quant::Q4_0> : RawHalves<8, Minimum::kNone, 2> {};
template <>
struct Raw<quant::Q4_1> : RawHalves<0, Minimum::kOne, 4> {};

template <int kOffset, Minimum kMinimum, int kQ>
struct RawFifth : RawFormat<32, 5, kOffset, false, kMinimum> {
  static constexpr int fifths = kQ - 4;
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints bits, To to) {
    Bytes v[4];
    w.turn(kQ, v);
    part<0>(v[0], bits, to);
    part<1>(v[1], bits, to);
    part<2>(v[2], bits, to);
    part<3>(v[3], bits, to);
  }
  template <int kI, class To>
  JUNO_BOTH static void part(Bytes v, Ints bits, To to) {
    to.put(4 * kI, either_bits(low4(v), fifth_bits<kI>(bits)));
    to.put(16 + 4 * kI, either_bits(field<4, 15>(v), fifth_bits<4 + kI>(bits)));
  }
};
template <>
struct Raw<quant::Q5_0> : RawFifth<16, Minimum::kNone, 6> {};
template <>
struct Raw<quant::Q5_1> : RawFifth<0, Minimum::kOne, 8> {};

template <int kCell, bool kScaled>
struct RawSigned : RawFormat<kCell, 8, kPanelOffset, kScaled, Minimum::kNone> {
  static constexpr bool is_signed = kPanelOffset == 0;
};
template <>
struct Raw<quant::Q8_0> : RawSigned<32, false> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Bytes v[4];
      w.turn(2 + 16 * half, v);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) to.put(16 * half + 4 * i, unsign(v[i]));
    }
  }
};

struct Look16 {
  int8_t values[16];
};
constexpr Look16 offset_table(const Look16& from, int offset) {
  Look16 to{};
  for (int i = 0; i < 16; ++i) to.values[i] = static_cast<int8_t>(from.values[i] + offset);
  return to;
}
inline constexpr Look16 kIq4Look =
    offset_table({{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}}, kPanelOffset);
inline constexpr Look16 kMxfp4Look = {{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}};

template <>
struct Raw<quant::IQ4_NL> : RawSigned<32, false> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
    const Table table = table16(kIq4Look.values);
    put_halves(w, 2, to, 0, [&](Bytes v) { return look_up(table, v); });
  }
};
template <>
struct Raw<quant::MXFP4> : RawFormat<32, 5, 12, false, Minimum::kNone> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
    const Table table = table16(kMxfp4Look.values);
    put_halves(w, 1, to, 0, [&](Bytes v) { return look_up(table, v); });
  }
};

// Blocks of 256.
// Six bits each, from twelve bytes (quant/bits.h, scale6 and min6), which follow d and dmin.
template <class To>
JUNO_BOTH void scales6(RawRows w, To to) {
  Bytes v[4];
  w.turn(0, v);
  const Ints low = all_ints(0x0f0f0f0f), top = all_ints(0x30303030), six = all_ints(0x3f3f3f3f);
  to.template put4<0, false>(both_bits(v[1], six));
  to.template put4<4, false>(either_bits(both_bits(v[3], low), both_bits(down32<2>(v[1]), top)));
  to.template put4_pairs<0, false, 0>(both_bits(v[2], six));
  to.template put4_pairs<4, false, 0>(
      either_bits(both_bits(down32<4>(v[3]), low), both_bits(down32<2>(v[2]), top)));
}

template <>
struct Raw<quant::Q4_K> : RawFormat<32, 4, 0, true, Minimum::kScaled> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c) {
      const int first = c / 2 * 64 + c % 2 * 16;
      Bytes v[4];
      w.turn(16 + c * 16, v);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        to.put(first + 4 * i, low4(v[i]));
        to.put(first + 32 + 4 * i, field<4, 15>(v[i]));
      }
    }
  }
  template <class To>
  JUNO_BOTH static void scales(RawRows w, To to) {
    scales6(w, to);
  }
};
template <>
struct Raw<quant::Q5_K> : RawFormat<32, 5, 0, true, Minimum::kScaled> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Bytes high[4];
      w.turn(16 + half * 16, high);
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        Bytes v[4];
        w.turn(48 + c * 32 + half * 16, v);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const int first = c * 64 + half * 16 + 4 * i;
          to.put(first, either_bits(low4(v[i]), up<4>(both_bits(high[i], all_bytes(1)))));
          to.put(first + 32, either_bits(field<4, 15>(v[i]), up<3>(both_bits(high[i], all_bytes(2)))));
          high[i] = down(high[i], 2);
        }
      }
    }
  }
  template <class To>
  JUNO_BOTH static void scales(RawRows w, To to) {
    scales6(w, to);
  }
};
template <>
struct Raw<quant::Q6_K> : RawFormat<16, 6, 32, true, Minimum::kNone> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      const int n = part / 2, p = part % 2 * 16;
      Bytes high[4], a[4], b[4];
      w.turn(128 + n * 32 + p, high);
      w.turn(n * 64 + p, a);
      w.turn(n * 64 + 32 + p, b);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int first = n * 128 + p + 4 * i;
        to.put(first, either_bits(low4(a[i]), up<4>(both_bits(high[i], all_bytes(3)))));
        to.put(first + 32, either_bits(low4(b[i]), up<2>(both_bits(high[i], all_bytes(12)))));
        to.put(first + 64, either_bits(field<4, 15>(a[i]), both_bits(high[i], all_bytes(48))));
        to.put(first + 96, either_bits(field<4, 15>(b[i]), field<2, 48>(high[i])));
      }
    }
  }
  template <class To>
  JUNO_BOTH static void scales(RawRows w, To to) {
    Bytes v[4];
    w.turn(192, v);
    put16<5>(v, to);
  }
  // Sixteen sub-scales and, where offsets are subtracted by pairs, these times the offset.
  template <int kShift, class To>
  JUNO_BOTH static void put16(const Bytes* v, To to) {
    to.template put4<0, true>(v[0]);
    to.template put4<4, true>(v[1]);
    to.template put4<8, true>(v[2]);
    to.template put4<12, true>(v[3]);
    if constexpr (!kWideParts) {
      to.template put4_pairs<0, true, kShift>(v[0]);
      to.template put4_pairs<4, true, kShift>(v[1]);
      to.template put4_pairs<8, true, kShift>(v[2]);
      to.template put4_pairs<12, true, kShift>(v[3]);
    }
  }
};
template <>
struct Raw<quant::Q2_K> : RawFormat<16, 2, 0, true, Minimum::kScaled> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      Bytes v[4];
      w.turn(16 + part * 16, v);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int first = part / 2 * 128 + part % 2 * 16 + 4 * i;
        to.put(first, both_bits(v[i], all_bytes(3)));
        to.put(first + 32, field<2, 3>(v[i]));
        to.put(first + 64, field<4, 3>(v[i]));
        to.put(first + 96, field<6, 3>(v[i]));
      }
    }
  }
  template <class To>
  JUNO_BOTH static void scales(RawRows w, To to) {
    Bytes v[4];
    w.turn(0, v);
    const Ints low = all_ints(0x0f0f0f0f);
    to.template put4<0, false>(both_bits(v[0], low));
    to.template put4<4, false>(both_bits(v[1], low));
    to.template put4<8, false>(both_bits(v[2], low));
    to.template put4<12, false>(both_bits(v[3], low));
    to.template put4_pairs<0, false, 0>(both_bits(down32<4>(v[0]), low));
    to.template put4_pairs<4, false, 0>(both_bits(down32<4>(v[1]), low));
    to.template put4_pairs<8, false, 0>(both_bits(down32<4>(v[2]), low));
    to.template put4_pairs<12, false, 0>(both_bits(down32<4>(v[3]), low));
  }
};
// Six bits less 32: the highest of them is the sign.
JUNO_BOTH Ints less32(Ints six) {
  const Ints v = both_bits(minus(six, all_ints(-0x20202020)), all_ints(0x3f3f3f3f));
  const Ints sign = both_bits(v, all_ints(0x20202020));
  return either_bits(v, either_bits(up32<1>(sign), up32<2>(sign)));
}
template <>
struct Raw<quant::Q3_K> : RawFormat<16, 3, 4, true, Minimum::kNone> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
#pragma GCC unroll 2
    for (int p = 0; p < 32; p += 16) {
      Bytes high[4];
      w.turn(p, high);
#pragma GCC unroll 2
      for (int n = 0; n < 2; ++n) {
        Bytes v[4];
        w.turn(32 + n * 32 + p, v);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const int first = n * 128 + p + 4 * i;
          to.put(first, either_bits(both_bits(v[i], all_bytes(3)), up<2>(both_bits(high[i], all_bytes(1)))));
          to.put(first + 32, either_bits(field<2, 3>(v[i]), up<1>(both_bits(high[i], all_bytes(2)))));
          to.put(first + 64, either_bits(field<4, 3>(v[i]), both_bits(high[i], all_bytes(4))));
          to.put(first + 96, either_bits(field<6, 3>(v[i]), field<1, 4>(high[i])));
          high[i] = down(high[i], 4);
        }
      }
    }
  }
  // Their twelve bytes are turned with four of before, so as not to read past the last block.
  template <class To>
  JUNO_BOTH static void scales(RawRows w, To to) {
    Bytes v[4], s[4];
    w.turn(92, v);
    const Bytes* const all = v + 1;
    const Ints low = all_ints(0x0f0f0f0f), top = all_ints(0x30303030);
    s[0] = less32(either_bits(both_bits(all[0], low), both_bits(up32<4>(all[2]), top)));
    s[1] = less32(either_bits(both_bits(all[1], low), both_bits(up32<2>(all[2]), top)));
    s[2] = less32(either_bits(both_bits(down32<4>(all[0]), low), both_bits(all[2], top)));
    s[3] = less32(either_bits(both_bits(down32<4>(all[1]), low), both_bits(down32<2>(all[2]), top)));
    Raw<quant::Q6_K>::put16<2>(s, to);
  }
};
template <>
struct Raw<quant::TQ2_0> : RawFormat<32, 2, 1, false, Minimum::kNone> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      Bytes v[4];
      w.turn(part * 16, v);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int first = part / 2 * 128 + part % 2 * 16 + 4 * i;
        to.put(first, both_bits(v[i], all_bytes(3)));
        to.put(first + 32, field<2, 3>(v[i]));
        to.put(first + 64, field<4, 3>(v[i]));
        to.put(first + 96, field<6, 3>(v[i]));
      }
    }
  }
  template <class To>
  JUNO_BOTH static void scales(RawRows, To) {}
};
template <>
struct Raw<quant::IQ4_XS> : RawSigned<32, true> {
  template <class To>
  JUNO_BOTH static void get(RawRows w, Ints, To to) {
    const Table table = table16(kIq4Look.values);
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c)
      put_halves(w, 8 + 16 * c, to, 32 * c, [&](Bytes v) { return look_up(table, v); });
  }
  // Four bits each in 16 bits of the second dword, two more each in 8 bits of the first.
  template <class To>
  JUNO_BOTH static void scales(RawRows w, To to) {
    Bytes v[4];
    w.turn(0, v);
    to.template put4<0, true>(six_bits(v[1], down32<16>(v[0])));
    to.template put4<4, true>(six_bits(down32<16>(v[1]), down32<24>(v[0])));
  }
  JUNO_BOTH static Ints six_bits(Ints four, Ints two) {
    four = both_bits(four, all_ints(0xffff));
    four = both_bits(either_bits(four, up32<8>(four)), all_ints(0x00ff00ff));
    four = both_bits(either_bits(four, up32<4>(four)), all_ints(0x0f0f0f0f));
    two = both_bits(two, all_ints(0xff));
    two = both_bits(either_bits(two, up32<12>(two)), all_ints(0x000f000f));
    two = both_bits(either_bits(two, up32<6>(two)), all_ints(0x03030303));
    return less32(either_bits(four, up32<4>(two)));
  }
};

}  // namespace
}  // namespace juno::cpu

#endif
