// SPDX-License-Identifier: Apache-2.0
// Products of 1 to 8 rows of activations with weights (docs/numerics.md §3, §4), at the pace of the memory. A
// warp has four rows of the weight, a strip, at a time: lane 4g + r does group g of row r by itself, so that
// the order of §3 costs nothing and only the tree over the groups crosses lanes. Loads run kDepth steps
// ahead, over the ends of strips. One launch serves several weights of one input.
#pragma once
#include "backend/gpu/kernels/cell.h"
#include "backend/gpu/kernels/gather.h"
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/matvec_float.h"
#include "backend/gpu/kernels/row_ring.h"
#include "quant/dot.h"

namespace juno::gpu {

// How a format's strips are walked, with activation blocks of kBlock elements: steps of four cells.
template <class F, int kBlock>
struct Walk {
  static constexpr int kCells = kBlock / kCell;  // of a block
  static constexpr int kBlocks = 4 / kCells;     // of a step
  static constexpr int kUnitCells = (quant::kUnit<F> < kBlock ? quant::kUnit<F> : kBlock) / kCell;

  struct Step {
    typename Layout<F>::Raw raw[4];
    typename Layout<F>::Head head[kBlocks];
  };

  // Blocks first … of the lane's row; those at `end` and later are loaded in vain.
  JUNO_GPU static void load(const LanePlanes& planes, int first, int end, Step& to) {
    JUNO_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      const int block = first + b < end ? first + b : end > 0 ? end - 1 : 0;
      to.head[b] = Layout<F>::head(planes, block * kCells);
      JUNO_UNROLL
      for (int j = 0; j < kCells; ++j) to.raw[b * kCells + j] = Layout<F>::load(planes, block * kCells + j);
    }
  }

  template <int kRows>
  JUNO_GPU static void add_block(const Step& step, int b, int block, const unsigned char* record,
                                 int row_bytes, float (&acc)[kRows]) {
    const Scales scales = Layout<F>::scales(step.head[b], step.raw[b * kCells], block * kCells);
    int sum[kRows] = {}, minima[kRows] = {};
    JUNO_UNROLL
    for (int j = 0; j < kCells; ++j) {
      uint32_t w[8];
      Layout<F>::words(step.raw[b * kCells + j], w);
      JUNO_UNROLL
      for (int t = 0; t < kRows; ++t) {
        const unsigned char* at = record + t * row_bytes;
        const Quad32 low = *reinterpret_cast<const Quad32*>(at + j * kCell);
        const Quad32 high = *reinterpret_cast<const Quad32*>(at + j * kCell + 16);
        const uint32_t x[8] = {low.x[0],  low.x[1],  low.x[2],  low.x[3],
                               high.x[0], high.x[1], high.x[2], high.x[3]};
        const uint32_t h = reinterpret_cast<const uint32_t*>(at + kBlock)[j];
        sum[t] += cell_product<F>(w, scales, j, x, h);
        minima[t] = cell_minimum<F>(scales, j, h, minima[t]);
        if ((j + 1) % kUnitCells != 0) continue;
        const float dx = *reinterpret_cast<const float*>(at + kBlock + kBlock / 8);
        acc[t] = fma(scales.d * dx, static_cast<float>(sum[t]), acc[t]);
        sum[t] = 0;
        if (quant::HasMin<F> && j + 1 == kCells)
          acc[t] = fma(scales.m * dx, static_cast<float>(minima[t]), acc[t]);
      }
    }
  }
};

// A format without a layout of its own: a block a step, element by element.
template <class F, int kBlock>
requires(!Layout<F>::kTakenApart) struct Walk<F, kBlock> {
  static constexpr int kBlocks = 1;
  struct Step {
    const typename F::Block* block;
  };
  JUNO_GPU static void load(const LanePlanes& planes, int first, int end, Step& to) {
    const int block = first < end ? first : end > 0 ? end - 1 : 0;
    to.block = reinterpret_cast<const typename F::Block*>(unit<F, 0>(planes, block * kBlock / F::block_size));
  }
  template <int kRows>
  JUNO_GPU static void add_block(const Step& step, int, int block, const unsigned char* record, int row_bytes,
                                 float (&acc)[kRows]) {
    for (int t = 0; t < kRows; ++t) {
      const unsigned char* at = record + t * row_bytes;
      const float d = *reinterpret_cast<const float*>(at + kBlock + kBlock / 8);
      quant::ActivationRow x;
      x.q = reinterpret_cast<const int8_t*>(at);
      x.h = reinterpret_cast<const int16_t*>(at + kBlock);
      x.d = &d;
      x.block = kBlock;
      acc[t] = add_one(acc[t], *step.block, block * kBlock % F::block_size, x);
    }
  }
  // quant::add_block for elements first … of a block, x being the activation block itself.
  JUNO_GPU static float add_one(float acc, const typename F::Block& w, int first,
                                const quant::ActivationRow& x) {
    const int step = quant::kUnit<F> < kBlock ? quant::kUnit<F> : kBlock;
    for (int u = 0; u < kBlock; u += step) {
      int32_t sum = 0;
      for (int i = u; i < u + step; ++i) sum += F::v(w, first + i) * x.q[i];
      acc = fma(F::d(w) * x.d[0], static_cast<float>(sum), acc);
    }
    if constexpr (quant::HasMin<F>) {
      int32_t sum = 0;
      for (int i = 0; i < kBlock; i += 16) sum += F::u(w, first + i) * x.h[i / 16];
      acc = fma(F::m(w) * x.d[0], static_cast<float>(sum), acc);
    }
    return acc;
  }
};

template <class F, int kBlock, int kRows, int kDepth>
JUNO_GPU void integer_strips(const MatvecArgs& a, const Job job) {
  using W = Walk<F, kBlock>;
  const int twice = a.epilogue == Epilogue::kGated ? 2 : 1;
  const int group = lane() / kStrip, blocks = a.k / kBlock;
  const int begin = static_cast<int>(quant::group_begin(group, blocks));
  const int end = static_cast<int>(quant::group_begin(group + 1, blocks));
  const int steps = ((blocks + 7) / 8 + W::kBlocks - 1) / W::kBlocks;
  const int items = job.count() * twice, row_bytes = record_row_bytes(a.k, kBlock);
  if (items == 0) return;
  const unsigned char* records = shared() + kRecordsAt + 16 * group;

  const auto planes_of = [&](int item) {
    const Weight& w = a.parts[job.part + item % twice].weight;
    const int strip = job.first + item / twice * job.stride;
    return lane_planes<F>(w.data + static_cast<uint64_t>(job.expert) * w.plane_bytes, w.rows, w.cols,
                          strip * kStrip + lane() % kStrip);
  };
  typename W::Step ring[kDepth];
  LanePlanes planes = planes_of(0);
  JUNO_UNROLL
  for (int d = 0; d < kDepth; ++d) W::load(planes, begin + d * W::kBlocks, end, ring[d]);

  // Steps are filled up to whole rounds, so that a strip ends with a round; the code stays short that way.
  float acc[kRows] = {}, kept = 0;
  JUNO_UNROLL_BY(1)
  for (int item = 0; item < items;) {
    JUNO_UNROLL_BY(1)
    for (int first = 0; first < steps; first += kDepth) {
      const bool last = first + kDepth >= steps;
      const int next = last ? 0 : first + kDepth;
      if (kRows == 1 && first == 0 && twice == 1)
        kept = residual_of(a, job, (job.first + item * job.stride) * kStrip + lane() % kStrip);
      if (last && item + 1 < items) planes = planes_of(item + 1);
      JUNO_UNROLL
      for (int d = 0; d < kDepth; ++d) {
        JUNO_UNROLL
        for (int b = 0; b < W::kBlocks; ++b) {
          const int block = begin + (first + d) * W::kBlocks + b;
          if (block < end)
            W::add_block(ring[d], b, block, records + block * record_bytes(kBlock), row_bytes, acc);
        }
        if (!last || item + 1 < items) W::load(planes, begin + (next + d) * W::kBlocks, end, ring[d]);
      }
    }
    JUNO_UNROLL
    for (int t = 0; t < kRows; ++t) acc[t] = group_tree(acc[t], kStrip);
    const int strip = job.first + item / twice * job.stride;
    finish(a, job, Place{strip * kStrip + lane() % kStrip, group, item % twice}, acc, kept);
    JUNO_UNROLL
    for (int t = 0; t < kRows; ++t) acc[t] = 0;
    ++item;
  }
}

// As many steps ahead as there are registers for.
template <class F, int kBlock, int kRows>
JUNO_GPU void walk_strips(const MatvecArgs& a, const Job& job) {
  constexpr bool kSmall = sizeof(typename Walk<F, kBlock>::Step) <= 80;
  constexpr int kFits = kRows == 1 || (kRows == 2 && kSmall) ? 2 : 1;
  integer_strips<F, kBlock, kRows, kFits>(a, job);
}
// kBlock: 128, or 0 for whatever else the activations' blocks are.
template <class F, int kBlock, int kRows>
JUNO_GPU void strips_of(const MatvecArgs& a, const Job& job) {
  if constexpr (quant::FloatFormat<F>) {
    float_strips<F, kRows>(a, job);
  } else if constexpr (F::block_size == 32 || kBlock == 128) {
    walk_strips<F, F::block_size == 32 ? 32 : 128, kRows>(a, job);
  } else {
    if (a.block == 64) return integer_strips<F, 64, kRows, 1>(a, job);
    integer_strips<F, 32, kRows, 1>(a, job);
  }
}
template <int kBlock, int kRows, class... Fs>
JUNO_GPU void strips_of_any(const MatvecArgs& a, const Job& job, quant::List<Fs...>) {
  ((sizeof...(Fs) == 1 || a.parts[job.part].weight.format == Fs::gguf_id
        ? strips_of<Fs, kBlock, kRows>(a, job)
        : void()),
   ...);
}

// What of the weights a warp reads first is on its way to the L2 cache while the kernel before still runs: a
// lane a plane of a strip.
template <class F, int p = 0>
JUNO_GPU void prefetch_plane(const Weight& w, uint64_t offset, int strip, int plane) {
  if constexpr (p < kPlaneCount<F>) {
    constexpr Plane kPlane = Layout<F>::planes().at[p];
    const uint64_t bytes = static_cast<uint64_t>(w.cols / kPlane.elements) * (kStrip * kPlane.bytes);
    const uint64_t begin = offset + static_cast<uint64_t>(strip) * bytes, from = begin / 16 * 16;
    const auto size = static_cast<uint32_t>((begin + bytes) / 16 * 16 - from);
    if (plane == p && size > 0) return prefetch(w.data + from, size);
    prefetch_plane<F, p + 1>(w, offset + round_up(static_cast<uint64_t>((w.rows + 3) / 4) * bytes, 256),
                             strip, plane);
  }
}
template <class F>
JUNO_GPU void prefetch_strip(const Weight& w, int strip, int plane) {
  if constexpr (!quant::FloatFormat<F>) return prefetch_plane<F>(w, 0, strip, plane);
  const uint64_t bytes = static_cast<uint64_t>(w.cols) * (kStrip * sizeof(typename F::Block));
  if (plane == 0 && strip * kStrip + kStrip <= w.rows && bytes % 16 == 0)
    prefetch(w.data + static_cast<uint64_t>(strip) * bytes, static_cast<uint32_t>(bytes));
}
template <class... Fs>
JUNO_GPU void prefetch_any(const Weight& w, int strip, int plane, quant::List<Fs...>) {
  ((w.format == Fs::gguf_id ? prefetch_strip<Fs>(w, strip, plane) : void()), ...);
}
template <class List>
JUNO_GPU void prefetch_share(const MatvecArgs& a, int me, int warps_at_once, List formats) {
  const int lanes_of = lane() / kMaxPlanes, plane = lane() % kMaxPlanes;  // eight strips at a time
  const int halves = a.epilogue == Epilogue::kGated ? 2 : 1, parts = halves == 2 ? 1 : a.part_count;
  if (lanes_of >= a.prefetch_strips * halves) return;
  int strip = me + lanes_of / halves * warps_at_once;
  for (int part = 0; part < parts; ++part) {
    const Weight& w = a.parts[part + lanes_of % halves].weight;
    const int strips = (w.rows + kStrip - 1) / kStrip;
    if (strip < strips) return prefetch_any(w, strip, plane, formats);
    strip -= strips;
  }
}

// One row of activations.
template <class F>
inline constexpr bool kRings = false;
template <class F>
requires(!quant::FloatFormat<F> && Layout<F>::kTakenApart) inline constexpr bool kRings<F> = true;

template <class... Fs>
JUNO_BOTH constexpr int sizeof_list(quant::List<Fs...>) {
  return sizeof...(Fs);
}
template <class... Fs>
JUNO_BOTH constexpr bool rings(quant::List<Fs...>) {
  return (kRings<Fs> && ...);
}

// What a warp has of the parts from `part` on that share its format. `before`: strips of other parts, less
// whole turns of all warps.
JUNO_GPU Share share_of(const MatvecArgs& a, int part, int& before) {
  const int all = blocks_x() * warps(), me = warp() * blocks_x() + block_x();
  const bool gated = a.epilogue == Epilogue::kGated;
  Share share{.part = part, .parts = 0, .stride = all, .pair = block_y()};
  int strips = 0;
  for (int i = part;
       i < (gated ? 1 : a.part_count) && a.parts[i].weight.format == a.parts[part].weight.format; ++i) {
    strips += (a.parts[i].weight.rows + kStrip - 1) / kStrip;
    ++share.parts;
  }
  share.first = me < before ? me - before + all : me - before;
  share.items = share.first < strips ? (strips - share.first + all - 1) / all * (gated ? 2 : 1) : 0;
  before = (before + strips) % all;
  return share;
}

template <class F, int kBlock, class Do>
JUNO_GPU void with_ring_of(const MatvecArgs& a, const Share& share, Do&& go) {
  if constexpr (F::block_size == 32 || kBlock == 128) {
    go(RowRing<F, F::block_size == 32 ? 32 : 128>(a, share));
  } else {
    if (a.block == 64) return go(RowRing<F, 64>(a, share));
    go(RowRing<F, 32>(a, share));
  }
}
template <int kBlock, class Do, class... Fs>
JUNO_GPU void with_ring(const MatvecArgs& a, const Share& share, Do&& go, quant::List<Fs...>) {
  ((sizeof...(Fs) == 1 || a.parts[share.part].weight.format == Fs::gguf_id
        ? with_ring_of<Fs, kBlock>(a, share, go)
        : void()),
   ...);
}

template <class List, int kBlock>
JUNO_GPU void multiply_row(const MatvecArgs& a) {
  trigger_dependents();
  const int parts = a.epilogue == Epilogue::kGated ? 1 : a.part_count;
  int before = 0;
  Share share = share_of(a, 0, before);
  while (share.items == 0 && share.part + share.parts < parts)
    share = share_of(a, share.part + share.parts, before);
  int input = 0;
  if (a.ids) {
    wait_dependency();
    share.expert = a.ids[block_y()];
    if (share.expert < 0) return;
    input = share.pair / a.inputs_shared;
  }
  RingCursor next;
  const auto fill = [&](const auto& ring) { next = ring.fill(); };
  with_ring<kBlock>(a, share, fill, List{});
  wait_dependency();
  gather_records(a, input);
  barrier();
  JUNO_UNROLL_BY(1)
  while (true) {
    with_ring<kBlock>(
        a, share, [&](const auto& ring) { ring.run(next); }, List{});
    if (sizeof_list(List{}) == 1 || share.part + share.parts >= parts) return;
    share = share_of(a, share.part + share.parts, before);
    with_ring<kBlock>(a, share, fill, List{});
  }
}

// List: the formats of the parts. kRows: of activations, at least tokens * planes.
template <class List, int kBlock, int kRows>
JUNO_GPU void matvec(const MatvecArgs& a) {
  if constexpr (kRows == 1 && rings(List{})) return multiply_row<List, kBlock>(a);
  const int warps_at_once = blocks_x() * warps(), me = warp() * blocks_x() + block_x();
  trigger_dependents();
  if (!a.ids) prefetch_share(a, me, warps_at_once, List{});
  wait_dependency();
  Job job{.pair = block_y() * a.tokens, .input = 0, .expert = 0};
  if (a.ids) job.input = job.pair / a.inputs_shared, job.expert = a.ids[block_y()];
  if (job.expert < 0) return;
  if (a.block != 0) {
    gather_records(a, job.input);
    barrier();
  }
  const int parts = a.epilogue == Epilogue::kGated ? 1 : a.part_count;
  JUNO_UNROLL_BY(1)
  for (int before = 0; job.part < parts; ++job.part) {
    job.strips = (a.parts[job.part].weight.rows + kStrip - 1) / kStrip;
    job.first = (me + warps_at_once - before % warps_at_once) % warps_at_once;
    job.stride = warps_at_once;
    strips_of_any<kBlock, kRows>(a, job, List{});
    before += job.strips;
  }
}

#define JUNO_MATVEC_BODY(X, rows, threads, name, block, ...)  \
  JUNO_GPU void matvec_##name##_##rows(const MatvecArgs& a) { \
    matvec<quant::List<__VA_ARGS__>, block, rows>(a);         \
  }
JUNO_MATVEC_32(JUNO_MATVEC_BODY, , 1, )
JUNO_MATVEC_32(JUNO_MATVEC_BODY, , 2, )
JUNO_MATVEC_32(JUNO_MATVEC_BODY, , 4, )
JUNO_MATVEC_32(JUNO_MATVEC_BODY, , 8, )
JUNO_MATVEC_256(JUNO_MATVEC_BODY, , 1, )
JUNO_MATVEC_256(JUNO_MATVEC_BODY, , 2, )
JUNO_MATVEC_256(JUNO_MATVEC_BODY, , 4, )
JUNO_MATVEC_256(JUNO_MATVEC_BODY, , 8, )
#undef JUNO_MATVEC_BODY

}  // namespace juno::gpu
