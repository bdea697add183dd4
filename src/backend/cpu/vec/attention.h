// SPDX-License-Identifier: Apache-2.0
// Attention (docs/numerics.md §6): a chunk of the cache is widened to f32 once, keys turned so that its 64
// slots lie side by side, and then serves all query rows and heads of the item. Included by vec/kernels.cc
// only.
#pragma once
#include "backend/cpu/vec/vocabulary.h"
#include "base/half.h"
#include "base/math.h"
#include "quant/dot.h"

namespace juno::cpu {
namespace {

inline constexpr int kSlots = 64;  // positions of a chunk
inline constexpr int kRun = 8;     // elements of a dot product added in order
inline constexpr int kMaxRuns = 128;
inline constexpr int kTwins = kTileRows < 8 ? 1 : 2;  // queries that registers have room for at once

JUNO_BOTH int padded(int dim) { return (dim + kLanes - 1) / kLanes * kLanes; }

// Of one query, a row and a head of it: what the chunks so far come to.
struct State {
  int32_t n;
  float l;
  float* o;  // [padded value_dim]
};

struct Work {
  float *keys, *values, *chunk;  // [key_dim, 64], [64, padded value_dim], [kTwins, padded value_dim]
  float* states;                 // [rows * heads, 16 + padded value_dim]

  JUNO_BOTH Work(const AttentionItem& a, std::byte* scratch)
      : keys(reinterpret_cast<float*>(scratch)),
        values(keys + a.key_dim * kSlots),
        chunk(values + padded(a.value_dim) * kSlots),
        states(chunk + kTwins * padded(a.value_dim)) {}
};

size_t attend_scratch(int heads, int key_dim, int value_dim) {
  const size_t chunk = static_cast<size_t>(key_dim + padded(value_dim)) * kSlots + kTwins * padded(value_dim);
  return (chunk + static_cast<size_t>(kAttendRows) * heads * (16 + padded(value_dim))) * sizeof(float);
}

// 2^n for n <= 0, 0 below 2^-100.
JUNO_BOTH float power(int32_t n) { return n < -100 ? 0.0f : float_of(static_cast<uint32_t>(n + 127) << 23); }

// The first row of chunk c in keys and values.
JUNO_BOTH int64_t chunk_row(const AttentionItem& a, int32_t c) {
  return (static_cast<int64_t>(a.pages[c]) * a.kv_heads + a.kv_head) * kSlots;
}

JUNO_BOTH void ask(const uint16_t* from, int elements) {
  for (int i = 0; i < elements; i += 32) __builtin_prefetch(from + i);
}

// While keys are turned their values are asked for, and then the keys of chunk `next`.
JUNO_BOTH void widen_chunk(const AttentionItem& a, const Work& work, int32_t c, int32_t next, int slots) {
  const uint16_t* keys = a.keys + chunk_row(a, c) * a.key_dim;
  const uint16_t* values = a.values + chunk_row(a, c) * a.value_dim;
  const uint16_t* ahead = a.keys + chunk_row(a, next) * a.key_dim;
  const int width = padded(a.value_dim);
  int whole = 0;  // elements of keys turned eight at a time; a page always has all its slots
  for (; whole + 8 <= a.key_dim; whole += 8) {
    for (int s = 0; s < slots; s += kLanes) {
      Lanes columns[8];
      ask(values + s * a.value_dim + whole * kLanes, 8 * kLanes);
      load_columns(keys + s * a.key_dim + whole, a.key_dim, columns);
      for (int i = 0; i < 8; ++i) store(work.keys + (whole + i) * kSlots + s, columns[i]);
    }
  }
  for (int s = 0; s < slots; ++s) {
    for (int i = whole; i < a.key_dim; ++i) work.keys[i * kSlots + s] = f16_to_f32(keys[s * a.key_dim + i]);
    const uint16_t* value = values + s * a.value_dim;
    ask(ahead + s * a.key_dim, a.key_dim);
    int d = 0;
    for (; d + kLanes <= a.value_dim; d += kLanes) store(work.values + s * width + d, load_f16(value + d));
    for (; d < a.value_dim; ++d) work.values[s * width + d] = f16_to_f32(value[d]);
  }
}

// Sixteen slots: kCount runs of the dot products with kQ queries, side by side so that they need not wait for
// each other.
template <int kQ, int kCount>
JUNO_BOTH void add_runs(const float* const* q, int from, const float* keys, Lanes (*runs)[kMaxRuns]) {
  Lanes sums[kQ][kCount];
#pragma GCC unroll 2
  for (int j = 0; j < kQ; ++j)
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) sums[j][r] = all(0);
#pragma GCC unroll 8
  for (int i = 0; i < kRun; ++i)
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      const int at = from + r * kRun + i;
      const Lanes key = load(keys + at * kSlots);
#pragma GCC unroll 2
      for (int j = 0; j < kQ; ++j) sums[j][r] = fma(all(q[j][at]), key, sums[j][r]);
    }
#pragma GCC unroll 2
  for (int j = 0; j < kQ; ++j)
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) runs[j][from / kRun + r] = sums[j][r];
}

// dots[j][s] = q[j] · key of slot s, for sixteen slots.
template <int kQ>
JUNO_BOTH void dots16(const AttentionItem& a, const float* const* q, const float* keys,
                      float (*dots)[kSlots]) {
  Lanes runs[kQ][kMaxRuns];
  const int whole = a.key_dim / kRun;
  int count = 1, first = 0;
  while (count * kRun < a.key_dim) count *= 2;
  for (; first + kTileRows <= whole; first += kTileRows) add_runs<kQ, kTileRows>(q, first * kRun, keys, runs);
  for (; first < whole; ++first) add_runs<kQ, 1>(q, first * kRun, keys, runs);
  for (int j = 0; j < kQ; ++j) {
    for (int r = whole; r < count; ++r) {
      runs[j][r] = all(0);
      for (int i = r * kRun; i < a.key_dim; ++i)
        runs[j][r] = fma(all(q[j][i]), load(keys + i * kSlots), runs[j][r]);
    }
    for (int half = count / 2; half > 0; half /= 2)
      for (int r = 0; r < half; ++r) runs[j][r] = add(runs[j][r], runs[j][r + half]);
    store(dots[j], runs[j][0]);
  }
}

// Slots [begin, end) of the widened values.
struct Columns {
  const float* values;  // [64, width]
  int width, begin, end;
};

// o[j][d] for kWidth vectors of d from `at` on, side by side so that they need not wait for each other.
template <int kQ, int kWidth>
JUNO_BOTH void add_columns(const float (*weights)[kSlots], const Columns& of, float* const* o, int at) {
  Lanes sums[kQ][kWidth];
#pragma GCC unroll 2
  for (int j = 0; j < kQ; ++j)
#pragma GCC unroll 4
    for (int i = 0; i < kWidth; ++i) sums[j][i] = all(0);
  for (int s = of.begin; s < of.end; ++s) {
    Lanes w[kQ];
#pragma GCC unroll 2
    for (int j = 0; j < kQ; ++j) w[j] = all(weights[j][s]);
#pragma GCC unroll 4
    for (int i = 0; i < kWidth; ++i) {
      const Lanes value = load(of.values + s * of.width + at + i * kLanes);
#pragma GCC unroll 2
      for (int j = 0; j < kQ; ++j) sums[j][i] = fma(w[j], value, sums[j][i]);
    }
  }
#pragma GCC unroll 2
  for (int j = 0; j < kQ; ++j)
#pragma GCC unroll 4
    for (int i = 0; i < kWidth; ++i) store(o[j] + at + i * kLanes, sums[j][i]);
}

// Scores to weights, in place, for slots [begin, end); the others get 0. Sets n and l.
JUNO_BOTH void weigh(const AttentionItem& a, int begin, int end, float* t, State& to) {
  float tree[kSlots];
  int32_t n[kSlots];
  for (int s = 0; s < begin; ++s) t[s] = 0;
  for (int s = end; s < kSlots; ++s) t[s] = 0;
  if (a.capped)
    for (int s = 0; s < kSlots; ++s) t[s] = tanh(t[s] * a.before) * a.after;
  else
    for (int s = 0; s < kSlots; ++s) t[s] = t[s] * a.after;
  for (int s = 0; s < kSlots; ++s) {
    n[s] = rne_int(t[s]);
    t[s] = exp2_poly(t[s] - rne(t[s]));
  }
  int32_t top = n[begin];
  for (int s = begin; s < end; ++s) top = n[s] > top ? n[s] : top;
  for (int s = 0; s < kSlots; ++s) {
    const float w =
        t[s] * power(static_cast<int32_t>(static_cast<uint32_t>(n[s]) - static_cast<uint32_t>(top)));
    t[s] = s >= begin && s < end ? w : 0.0f;
  }
  for (int s = 0; s < kSlots; ++s) tree[s] = t[s];
  to.n = top;
  to.l = quant::halving_tree(tree, kSlots);
}

// Slots [begin, end) of the widened chunk, for kQ queries.
template <int kQ>
JUNO_BOTH void attend_chunk(const AttentionItem& a, const Work& work, const float* const* q, int begin,
                            int end, State* to) {
  float t[kQ][kSlots];
  for (int s = begin / kLanes * kLanes; s < end; s += kLanes)
    dots16<kQ>(a, q, work.keys + s, reinterpret_cast<float(*)[kSlots]>(&t[0][s]));
  float* o[kQ];
  for (int j = 0; j < kQ; ++j) {
    weigh(a, begin, end, t[j], to[j]);
    o[j] = to[j].o;
  }
  const Columns of{work.values, padded(a.value_dim), begin, end};
  int d = 0;
  for (; d + 4 * kLanes <= of.width; d += 4 * kLanes) add_columns<kQ, 4>(t, of, o, d);
  for (; d < of.width; d += kLanes) add_columns<kQ, 1>(t, of, o, d);
}

JUNO_BOTH void merge(State& all, const State& chunk, int width) {
  const int32_t n = all.n > chunk.n ? all.n : chunk.n;
  const float keep = power(static_cast<int32_t>(static_cast<uint32_t>(all.n) - static_cast<uint32_t>(n)));
  const float take = power(static_cast<int32_t>(static_cast<uint32_t>(chunk.n) - static_cast<uint32_t>(n)));
  all.n = n;
  all.l = all.l * keep + chunk.l * take;
  for (int d = 0; d < width; ++d) all.o[d] = all.o[d] * keep + chunk.o[d] * take;
}

JUNO_BOTH int32_t first_seen(const AttentionItem& a, int32_t position) {
  return a.window != 0 && position - a.window + 1 > 0 ? position - a.window + 1 : 0;
}

// What is kept of a query row and head, one after the other.
int attend_state(int value_dim) { return 16 + padded(value_dim); }
JUNO_BOTH int state_floats(const AttentionItem& a) { return 16 + padded(a.value_dim); }
JUNO_BOTH State load_state(float* at) { return {static_cast<int32_t>(bits_of(at[0])), at[1], at + 16}; }
JUNO_BOTH void store_state(float* at, const State& state) {
  at[0] = float_of(static_cast<uint32_t>(state.n));
  at[1] = state.l;
}

// Which slots of chunk c row r sees: none where begin >= end.
struct Seen {
  int begin, end;
  bool first;  // whether no chunk before it is seen
};
JUNO_BOTH Seen seen(const AttentionItem& a, int32_t c, int r) {
  const int32_t position = a.position + r, from = first_seen(a, position), start = c * kSlots;
  return {from > start ? from - start : 0, position - start + 1 < kSlots ? position - start + 1 : kSlots,
          start <= from};
}

JUNO_BOTH bool same(const Seen& x, const Seen& y) {
  return x.begin == y.begin && x.end == y.end && x.first == y.first;
}

// Chunk c for kQ queries from `index` on, that see the same of it: apart, or after the chunks before it.
template <int kQ, bool kApart>
JUNO_BOTH void attend_queries(const AttentionItem& a, const Work& work, int index, const Seen& see,
                              float* kept) {
  const int width = padded(a.value_dim);
  const float* q[kQ];
  State all[kQ], chunk[kQ];
  for (int j = 0; j < kQ; ++j) {
    const int r = (index + j) / a.heads, h = (index + j) % a.heads;
    q[j] = a.q + r * a.q_stride + h * a.key_dim;
    all[j] = load_state(kept + (index + j) * state_floats(a));
    chunk[j] = {0, 0, kApart || see.first ? all[j].o : work.chunk + j * width};
  }
  attend_chunk<kQ>(a, work, q, see.begin, see.end, chunk);
  for (int j = 0; j < kQ; ++j) {
    if (kApart || see.first) all[j] = chunk[j];
    else merge(all[j], chunk[j], width);
    store_state(kept + (index + j) * state_floats(a), all[j]);
  }
}

// Chunk c for all query rows that see some of it.
template <bool kApart>
JUNO_BOTH void attend_rows(const AttentionItem& a, const Work& work, int32_t c, float* kept) {
  const int queries = a.rows * a.heads;
  for (int i = 0; i < queries;) {
    const Seen see = seen(a, c, i / a.heads);
    const bool twins = kTwins == 2 && i + 1 < queries && same(see, seen(a, c, (i + 1) / a.heads));
    if (see.begin < see.end) {
      if (twins) attend_queries<kTwins, kApart>(a, work, i, see, kept);
      else attend_queries<1, kApart>(a, work, i, see, kept);
    }
    i += twins ? kTwins : 1;
  }
}

JUNO_BOTH int slots_of(const AttentionItem& a, int32_t c) {
  const int32_t slots = a.position + a.rows - c * kSlots;
  return slots < kSlots ? slots : kSlots;
}

JUNO_BOTH void clear_values(const AttentionItem& a, const Work& work) {
  if (padded(a.value_dim) == a.value_dim) return;
  for (int i = 0; i < kSlots * padded(a.value_dim); ++i) work.values[i] = 0;
}

// y from what the chunks came to.
void attend_end(const AttentionItem& a, float* kept) {
  for (int r = 0; r < a.rows; ++r) {
    for (int h = 0; h < a.heads; ++h) {
      const float* at = kept + (r * a.heads + h) * state_floats(a);
      float* y = a.y + r * a.y_stride + h * a.value_dim;
      for (int d = 0; d < a.value_dim; ++d) y[d] = at[16 + d] / at[1];
    }
  }
}

void attend(const AttentionItem& a, std::byte* scratch) {
  const Work work(a, scratch);
  clear_values(a, work);
  const int32_t last = (a.position + a.rows - 1) / kSlots;
  for (int32_t c = first_seen(a, a.position) / kSlots; c <= last; ++c) {
    widen_chunk(a, work, c, c < last ? c + 1 : c, slots_of(a, c));
    attend_rows<false>(a, work, c, work.states);
  }
  attend_end(a, work.states);
}

// Chunk c alone, to be merged later. `next` is a chunk that may be wanted soon.
void attend_part(const AttentionItem& a, int32_t c, int32_t next, float* part, std::byte* scratch) {
  const Work work(a, scratch);
  clear_values(a, work);
  widen_chunk(a, work, c, next, slots_of(a, c));
  attend_rows<true>(a, work, c, part);
}

// Chunks [first, last), each a part, into what those before them came to.
void attend_merge(const AttentionItem& a, int32_t first, int32_t last, float* parts, float* kept) {
  const int floats = state_floats(a);
  for (int32_t c = first; c < last; ++c) {
    for (int r = 0; r < a.rows; ++r) {
      const Seen see = seen(a, c, r);
      for (int h = 0; h < a.heads; ++h, parts += floats) {
        if (see.begin >= see.end) continue;
        float* at = kept + (r * a.heads + h) * floats;
        State all = load_state(at);
        const State part = load_state(parts);
        if (see.first) {
          for (int d = 0; d < padded(a.value_dim); ++d) all.o[d] = part.o[d];
          all.n = part.n;
          all.l = part.l;
        } else {
          merge(all, part, padded(a.value_dim));
        }
        store_state(at, all);
      }
    }
  }
}

void store_f16(uint16_t* to, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = f32_to_f16(from[i]);
}

}  // namespace
}  // namespace juno::cpu
