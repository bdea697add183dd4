// SPDX-License-Identifier: Apache-2.0
// Products of 1 to 8 rows of activations with weights (docs/numerics.md §3, §4), at the pace of the memory. A
// warp has four rows of the weight, a strip, at a time: lane 4g + r does group g of row r by itself, so that
// the order of §3 costs nothing and only the tree over the groups crosses lanes (row_ring.h). One launch
// serves several weights of one input.
#pragma once
#include "backend/gpu/kernels/cell.h"
#include "backend/gpu/kernels/gather.h"
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/matvec_float.h"
#include "backend/gpu/kernels/row_ring.h"
#include "quant/dot.h"

namespace juno::gpu {

// A format without a layout of its own: element by element, as it lies in the file.
template <class F, int kBlock>
struct Walk {
  template <int kRows>
  JUNO_GPU static void add_block(const LanePlanes& planes, int block, const unsigned char* record,
                                 int row_bytes, float (&acc)[kRows]) {
    const auto& w =
        *reinterpret_cast<const typename F::Block*>(unit<F, 0>(planes, block * kBlock / F::block_size));
    for (int t = 0; t < kRows; ++t) {
      const unsigned char* at = record + t * row_bytes;
      const float d = *reinterpret_cast<const float*>(at + kBlock + kBlock / 8);
      quant::ActivationRow x;
      x.q = reinterpret_cast<const int8_t*>(at);
      x.h = reinterpret_cast<const int16_t*>(at + kBlock);
      x.d = &d;
      x.block = kBlock;
      acc[t] = add_one(acc[t], w, block * kBlock % F::block_size, x);
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

template <class F, int kBlock, int kRows>
JUNO_GPU void integer_strips(const MatvecArgs& a, const Job job) {
  using W = Walk<F, kBlock>;
  const int twice = a.epilogue == Epilogue::kGated ? 2 : 1;
  const int group = lane() / kStrip, blocks = a.k / kBlock;
  const int begin = static_cast<int>(quant::group_begin(group, blocks));
  const int end = static_cast<int>(quant::group_begin(group + 1, blocks));
  const int row_bytes = record_row_bytes(a.k, kBlock);
  const unsigned char* records = shared() + kRecordsAt + 16 * group;
  float kept = 0;
  JUNO_UNROLL_BY(1)
  for (int item = 0; item < job.count() * twice; ++item) {
    const int row = (job.first + item / twice * job.stride) * kStrip + lane() % kStrip;
    const Weight& w = a.parts[job.part + item % twice].weight;
    const LanePlanes planes =
        lane_planes<F>(w.data + static_cast<uint64_t>(job.expert) * w.plane_bytes, w.rows, w.cols, row);
    if (kRows == 1 && twice == 1) kept = residual_of(a, job, row);
    float acc[kRows] = {};
    JUNO_UNROLL_BY(1)
    for (int block = begin; block < end; ++block)
      W::add_block(planes, block, records + block * record_bytes(kBlock), row_bytes, acc);
    JUNO_UNROLL
    for (int t = 0; t < kRows; ++t) acc[t] = group_tree(acc[t], kStrip);
    finish(a, job, Place{row, group, item % twice}, acc, kept);
  }
}

// kBlock: 128, or 0 for whatever else the activations' blocks are.
template <class F, int kBlock, int kRows>
JUNO_GPU void strips_of(const MatvecArgs& a, const Job& job) {
  if constexpr (quant::FloatFormat<F>) {
    float_strips<F, kRows>(a, job);
  } else if constexpr (F::block_size == 32 || kBlock == 128) {
    integer_strips<F, F::block_size == 32 ? 32 : 128, kRows>(a, job);
  } else {
    if (a.block == 64) return integer_strips<F, 64, kRows>(a, job);
    integer_strips<F, 32, kRows>(a, job);
  }
}
template <int kBlock, int kRows, class... Fs>
JUNO_GPU void strips_of_any(const MatvecArgs& a, const Job& job, quant::List<Fs...>) {
  ((sizeof...(Fs) == 1 || a.parts[job.part].weight.format == Fs::gguf_id
        ? strips_of<Fs, kBlock, kRows>(a, job)
        : void()),
   ...);
}

// What of float weights a warp reads first is on its way to the L2 cache while the kernel before still runs.
template <class F>
JUNO_GPU void prefetch_strip(const Weight& w, int strip) {
  if constexpr (quant::FloatFormat<F>) {
    const uint64_t bytes = static_cast<uint64_t>(w.cols) * (kStrip * sizeof(typename F::Block));
    if (strip * kStrip + kStrip <= w.rows && bytes % 16 == 0)
      prefetch(w.data + static_cast<uint64_t>(strip) * bytes, static_cast<uint32_t>(bytes));
  }
}
template <class... Fs>
JUNO_GPU void prefetch_any(const Weight& w, int strip, quant::List<Fs...>) {
  ((w.format == Fs::gguf_id ? prefetch_strip<Fs>(w, strip) : void()), ...);
}
template <class List>
JUNO_GPU void prefetch_share(const MatvecArgs& a, int me, int warps_at_once, List formats) {
  const int halves = a.epilogue == Epilogue::kGated ? 2 : 1, parts = halves == 2 ? 1 : a.part_count;
  if (lane() >= a.prefetch_strips * halves) return;
  int strip = me + lane() / halves * warps_at_once;
  for (int part = 0; part < parts; ++part) {
    const Weight& w = a.parts[part + lane() % halves].weight;
    const int strips = (w.rows + kStrip - 1) / kStrip;
    if (strip < strips) return prefetch_any(w, strip, formats);
    strip -= strips;
  }
}

// Formats with a layout of their own.
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
  Share share{.part = part, .parts = 0, .stride = all, .pair = block_y() * a.tokens};
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

template <class F, int kBlock, int kRows, class Do>
JUNO_GPU void with_ring_of(const MatvecArgs& a, const Share& share, Do&& go) {
  if constexpr (F::block_size == 32 || kBlock == 128) {
    go(RowRing < F, F::block_size == 32 ? 32 : 128, kRows > (a, share));
  } else {
    if (a.block == 64) return go(RowRing<F, 64, kRows>(a, share));
    go(RowRing<F, 32, kRows>(a, share));
  }
}
template <int kBlock, int kRows, class Do, class... Fs>
JUNO_GPU void with_ring(const MatvecArgs& a, const Share& share, Do&& go, quant::List<Fs...>) {
  ((sizeof...(Fs) == 1 || a.parts[share.part].weight.format == Fs::gguf_id
        ? with_ring_of<Fs, kBlock, kRows>(a, share, go)
        : void()),
   ...);
}

template <class List, int kBlock, int kRows>
JUNO_GPU void multiply_rows(const MatvecArgs& a) {
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
  with_ring<kBlock, kRows>(a, share, fill, List{});
  wait_dependency();
  gather_records(a, input);
  barrier();
  JUNO_UNROLL_BY(1)
  while (true) {
    with_ring<kBlock, kRows>(
        a, share, [&](const auto& ring) { ring.run(next); }, List{});
    if (sizeof_list(List{}) == 1 || share.part + share.parts >= parts) return;
    share = share_of(a, share.part + share.parts, before);
    with_ring<kBlock, kRows>(a, share, fill, List{});
  }
}

// List: the formats of the parts. kRows: of activations, at least tokens * planes.
template <class List, int kBlock, int kRows>
JUNO_GPU void matvec(const MatvecArgs& a) {
  if constexpr (rings(List{})) return multiply_rows<List, kBlock, kRows>(a);
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
