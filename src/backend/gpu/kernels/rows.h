// SPDX-License-Identifier: Apache-2.0
// What works on rows of activations: docs/numerics.md §2, §5, §7, §8 and the loading of weights.
#pragma once
#include "backend/gpu/kernels/cell.h"
#include "backend/gpu/kernels/head.h"
#include "backend/gpu/kernels/round.h"
#include "backend/gpu/kernels/spot.h"
#include "base/sin_cos.h"

namespace juno::gpu {

JUNO_GPU int64_t element() { return static_cast<int64_t>(block_x()) * threads() + thread(); }
JUNO_GPU int64_t elements_at_once() { return static_cast<int64_t>(blocks_x()) * threads(); }

// Embed: a thread a cell.
template <class F>
JUNO_GPU void embed_cell(const Weight& table, int64_t row, int cell, float* y) {
  if constexpr (quant::FloatFormat<F>) {
    const auto* w = reinterpret_cast<const typename F::Block*>(table.data) + row * table.cols;
    for (int i = cell * kCell; i < (cell + 1) * kCell && i < table.cols; ++i) y[i] = quant::value<F>(w[i], 0);
  } else if constexpr (Layout<F>::kTakenApart) {
    const LanePlanes planes = lane_planes<F>(table.data, table.rows, table.cols, row);
    const auto raw = Layout<F>::load(planes, cell);
    const Scales scales = Layout<F>::scales(Layout<F>::head(planes, cell), raw, cell);
    uint32_t w[8];
    Layout<F>::words(raw, w);
    JUNO_UNROLL
    for (int i = 0; i < kCell; ++i) y[cell * kCell + i] = cell_value<F>(w, scales, 0, i);
  } else {
    const LanePlanes planes = lane_planes<F>(table.data, table.rows, table.cols, row);
    const int first = cell * kCell;
    const auto& block =
        *reinterpret_cast<const typename F::Block*>(unit<F, 0>(planes, first / F::block_size));
    for (int i = 0; i < kCell; ++i) y[first + i] = quant::value<F>(block, (first + i) % F::block_size);
  }
}
template <class... Fs>
JUNO_GPU void embed_any(const Weight& table, int64_t row, int cell, float* y, quant::List<Fs...>) {
  ((table.format == Fs::gguf_id ? embed_cell<Fs>(table, row, cell, y) : void()), ...);
}
JUNO_GPU void embed(const EmbedArgs& a) {
  begin();
  const int cells = (a.table.cols + kCell - 1) / kCell;
  for (int64_t i = element(); i < static_cast<int64_t>(a.count) * cells; i += elements_at_once()) {
    const int64_t t = i / cells;
    embed_any(a.table, a.tokens[t], static_cast<int>(i % cells), a.y + t * a.table.cols, quant::Formats{});
  }
}

// Norm: a block a run when runs are long, else a warp.
JUNO_GPU void norm(const NormArgs& a) {
  begin();
  float* slots = shared<float>();
  for (int64_t run = block_x(); run < a.runs; run += blocks_x()) {
    float* x = slots + kSlots;
    stage_row(a.x + run * a.n, a.n, x);
    barrier();
    const Normed of = norm_of_row(x, a.n, a.w, slots);
    for (int i = thread(); i < a.n; i += threads()) a.y[run * a.n + i] = normed(of, a.w, x[i], i);
    barrier();
  }
}

// A norm is found by every piece's block; the rest each does for its piece alone.
struct Piece {
  int first, count;
};
JUNO_GPU Piece piece_of_row(int k) {
  const int piece = (k + blocks_x() * 128 - 1) / (blocks_x() * 128) * 128, first = block_x() * piece;
  return {first, k - first < piece ? k - first : piece};
}
template <class Sink>
JUNO_GPU void round_piece(const QuantiseArgs& a, const Piece& piece, const RoundRows& rows,
                          const Sink& sink) {
  const bool whole = a.source == Source::kNorm;
  const int64_t from_row = static_cast<int64_t>(block_y()) * a.k + (whole ? 0 : piece.first);
  float* slots = shared<float>();
  float* staged = slots + kSlots;
  RoundSource from{a.x + from_row, a.up ? a.up + from_row : nullptr, a.norm, a.source, a.act};
  const Normed of = stage_source(from, whole ? a.k : piece.count, slots, staged);
  if (whole) {
    staged += piece.first;
    from.norm.weight += piece.first;
    if (from.norm.bias) from.norm.bias += piece.first;
  }
  round_row(from, of, staged, rows, sink);
}

// Grid: pieces of a row, rows.
JUNO_GPU void quantise(const QuantiseArgs& a) {
  begin();
  const Piece piece = piece_of_row(a.k);
  if (piece.count <= 0) return;
  const int first = piece.first;
  const GlobalSink sink{{a.y.q + first, a.y.d + first / a.block, a.y.h + first / 32}, a.k, a.block};
  round_piece(a, piece, {piece.count, a.block, a.planes, block_y() * a.planes}, sink);
}

// Rope.
JUNO_GPU void rope_table(const RopeTableArgs& a) {
  begin();
  for (int64_t i = element(); i < static_cast<int64_t>(a.tokens) * a.pairs; i += elements_at_once()) {
    const int64_t t = i / a.pairs, pair = i % a.pairs;
    const f64::SinCos turn = f64::sin_cos_text(static_cast<double>(a.positions[t]) * a.freq[pair]);
    a.table[t * 2 * a.pairs + pair] = static_cast<float>(turn.cos * a.magnitude);
    a.table[t * 2 * a.pairs + a.pairs + pair] = static_cast<float>(turn.sin * a.magnitude);
  }
}

// A thread a pair, and one for each element that stands still, so that it may work in place.
JUNO_GPU void rope(const RopeArgs& a) {
  begin();
  const int per_head = a.shape.head_dim - a.shape.pairs;
  for (int64_t i = element(); i < static_cast<int64_t>(a.tokens) * a.heads * per_head;
       i += elements_at_once()) {
    const int64_t head = i / per_head;  // of all tokens
    const int j = static_cast<int>(i % per_head), pairs = a.shape.pairs;
    const float* x = a.x + head * a.shape.head_dim;
    float* y = a.y + head * a.shape.head_dim;
    if (j >= pairs) {
      y[j + pairs] = x[j + pairs];
      continue;
    }
    const float* turn = a.table + head / a.heads * 2 * pairs;
    const int first = a.shape.interleaved ? 2 * j : j, second = a.shape.interleaved ? first + 1 : j + pairs;
    float x0 = x[first], x1 = x[second];
    turn_pair(x0, x1, turn[j], turn[pairs + j]);
    y[first] = x0;
    y[second] = x1;
  }
}

// Prepare: a warp a row and a head of q, k or v.
JUNO_GPU void prepare(const PrepareArgs& a) {
  begin();
  const Places& p = a.places;
  const int row = block_y(), at = block_x() * warps() + warp(), heads = a.heads + p.kv_heads;
  if (p.positions[row] < 0 || at >= heads + p.kv_heads) return;
  if (at >= heads) {
    const float* const v = a.v + row * a.v_stride + static_cast<int64_t>(at - heads) * p.value_dim;
    uint16_t* const to = cache_row(p, p.values, p.value_dim, row, at - heads);
    for (int i = lane(); i < p.value_dim; i += kWarp) to[i] = float_to_half(v[i]);
    return;
  }
  float* const y = shared<float>() + warp() * p.key_dim;
  prepare_head_of(a, row, at, a.heads, y);
  uint16_t* const key = at < a.heads ? nullptr : cache_row(p, p.keys, p.key_dim, row, at - a.heads);
  float* const q = a.q_out + (static_cast<int64_t>(row) * a.heads + at) * p.key_dim;
  for (int i = lane(); i < p.key_dim; i += kWarp) {
    if (key) key[i] = float_to_half(y[i]);
    else q[i] = y[i];
  }
}

// Element by element.
JUNO_GPU float element_of(const ElementArgs& a, int64_t i) {
  switch (a.what) {
    case Elementwise::kAdd:
      return a.a[i] + a.b[i];
    case Elementwise::kScale:
      return a.a[i] * a.factor;
    case Elementwise::kSoftcap:
      return tanh(a.a[i] / a.factor) * a.factor;
    case Elementwise::kGated:
      return activate(a.act, a.a[i]) * a.b[i];
    default:
      return a.a[i];
  }
}
JUNO_GPU void elementwise(const ElementArgs& a) {
  begin();
  for (int64_t i = element(); i < a.n; i += elements_at_once()) a.y[i] = element_of(a, i);
}
JUNO_GPU void rows(const RowsArgs& a) {
  begin();
  for (int64_t i = element(); i < static_cast<int64_t>(a.count) * a.width; i += elements_at_once())
    a.y[i] = a.x[static_cast<int64_t>(a.index[i / a.width]) * a.width + i % a.width];
}

// Mixtures: ops/route.cc, a warp a token; scores are computed side by side, all sums in order.
JUNO_GPU bool chosen_before(const int32_t* ids, int count, int expert) {
  for (int i = 0; i < count; ++i)
    if (ids[i] == expert) return true;
  return false;
}
JUNO_GPU void route(const RouteArgs& a) {
  begin();
  const int token = block_x() * warps() + warp();
  float* scores = shared<float>() + warp() * a.experts;
  const float* logits = a.logits + static_cast<int64_t>(token) * a.experts;
  if (token >= a.tokens) return;
  float top = logits[0], sum = 0;
  for (int e = 1; e < a.experts; ++e) top = logits[e] > top ? logits[e] : top;
  for (int e = lane(); e < a.experts; e += kWarp)
    scores[e] = a.sigmoid ? sigmoid(logits[e]) : exp(logits[e] - top);
  warp_barrier();
  if (lane() != 0) return;
  for (int e = 0; e < a.experts && !a.sigmoid; ++e) sum = sum + scores[e];
  for (int e = 0; e < a.experts && !a.sigmoid; ++e) scores[e] = scores[e] / sum;
  int32_t* ids = a.ids + static_cast<int64_t>(token) * a.top_k;
  float* weights = a.weights + static_cast<int64_t>(token) * a.top_k;
  float chosen = 0;
  for (int i = 0; i < a.top_k; ++i) {
    int best = -1;
    for (int e = 0; e < a.experts; ++e)
      if (!chosen_before(ids, i, e) && (best < 0 || scores[e] > scores[best])) best = e;
    ids[i] = best;
    weights[i] = scores[best];
    chosen = chosen + scores[best];
  }
  for (int i = 0; i < a.top_k && a.normalise; ++i) weights[i] = weights[i] / chosen;
}
// The ids of all pairs, piece by piece in shared memory; each(expert, pair) by the thread that has the
// expert, pairs in order.
template <class Each>
JUNO_GPU void each_pair(const GroupArgs& a, int32_t* some, Each&& each) {
  for (int first = 0; first < a.pairs; first += kGroupPiece) {
    const int count = a.pairs - first < kGroupPiece ? a.pairs - first : kGroupPiece;
    barrier();
    for (int i = thread(); i < count; i += threads()) some[i] = a.ids[first + i];
    barrier();
    for (int e = thread(); e < a.count; e += threads())
      for (int i = 0; i < count; ++i)
        if (some[i] == e) each(e, first + i);
  }
  barrier();
}
// One block. The next slot of each expert stands in shared memory, at first how many pairs it has.
JUNO_GPU void group(const GroupArgs& a) {
  begin();
  int32_t *next = shared<int32_t>(), *some = next + a.count;
  for (int e = thread(); e < a.count; e += threads()) next[e] = 0;
  for (int s = thread(); s < a.groups * a.size; s += threads()) a.tokens[s] = 0;
  each_pair(a, some, [&](int e, int) { ++next[e]; });
  if (thread() == 0) {
    int g = 0;
    for (int e = 0; e < a.count; ++e) {
      const int first = g, count = next[e];
      for (int i = 0; i < count; i += a.size) a.experts[g++] = e;
      next[e] = first * a.size;
    }
    while (g < a.groups) a.experts[g++] = -1;
  }
  each_pair(a, some, [&](int e, int pair) {
    const int slot = next[e]++;
    a.slots[pair] = slot;
    a.tokens[slot] = pair / a.top_k;
  });
}
JUNO_GPU void combine(const CombineArgs& a) {
  begin();
  for (int64_t i = element(); i < static_cast<int64_t>(a.tokens) * a.width; i += elements_at_once()) {
    const int64_t t = i / a.width;
    const int32_t* ids = a.ids + t * a.top_k;
    float sum = 0;
    for (int done = 0, last = -1; done < a.top_k; ++done) {
      int next = -1;  // the choice with the lowest id above the last one's
      for (int c = 0; c < a.top_k; ++c)
        if (ids[c] > last && (next < 0 || ids[c] < ids[next])) next = c;
      last = ids[next];
      const int64_t pair = t * a.top_k + next, row = a.slots ? a.slots[pair] : pair;
      sum = fma(a.weights[pair], a.outputs[row * a.width + i % a.width], sum);
    }
    a.y[i] = sum;
  }
}

// The end of a pass.
// A float as an
// integer of the same order, -0 below +0 made equal to it.
JUNO_GPU uint32_t ordered(float x) {
  const uint32_t bits = bits_of(x == 0.0f ? 0.0f : x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
JUNO_GPU bool finite_number(float x) { return magnitude(x) < __builtin_inff(); }

JUNO_GPU void finite(const FiniteArgs& a) {
  begin();
  for (int64_t i = element(); i < a.n; i += elements_at_once())
    if (!finite_number(a.x[i])) *a.flag = 1;
}

// Loading: a thread a block.
template <class F>
JUNO_BOTH void repack_block(const uint8_t* from, const Weight& to, int64_t row, int block) {
  typename F::Block b;
  auto* bytes = reinterpret_cast<uint8_t*>(&b);
  for (size_t i = 0; i < sizeof b; ++i) bytes[i] = from[i];
  auto* matrix = const_cast<uint8_t*>(to.data);
  for (int p = 0; p < kPlaneCount<F>; ++p) {
    const Plane plane = Layout<F>::planes().at[p];
    uint8_t* at = matrix + row_offset<F>(p, to.rows, to.cols, row);
    const int units = F::block_size / plane.elements;
    for (int u = 0; u < units; ++u)
      Layout<F>::put(b, p, u, at + (static_cast<int64_t>(block) * units + u) * (kStrip * plane.bytes));
  }
}
template <class F>
JUNO_GPU void repack_rows(const RepackArgs& a) {
  if constexpr (quant::IntegerFormat<F>) {
    const int64_t blocks = a.to.cols / F::block_size;
    for (int64_t i = element(); i < a.count * blocks; i += elements_at_once())
      repack_block<F>(a.from + i * static_cast<int64_t>(sizeof(typename F::Block)), a.to,
                      a.first + i / blocks, static_cast<int>(i % blocks));
  }
}
template <class... Fs>
JUNO_GPU void repack_any(const RepackArgs& a, quant::List<Fs...>) {
  ((a.to.format == Fs::gguf_id ? repack_rows<Fs>(a) : void()), ...);
}
JUNO_GPU void repack(const RepackArgs& a) {
  begin();
  repack_any(a, quant::Formats{});
}

}  // namespace juno::gpu
