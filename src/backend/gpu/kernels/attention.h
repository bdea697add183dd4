// SPDX-License-Identifier: Apache-2.0
// Attention of rows that stand alone (docs/numerics.md §6): a team of threads has a chunk of one head of the
// cache and all query heads that share it, and asks for the next one while it adds up. What has to be done to
// q, k and v before is done here too where no other row wants to see it.
#pragma once
#include "backend/gpu/kernels/head.h"
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/runs.h"
#include "backend/gpu/kernels/spot.h"
#include "backend/gpu/kernels/team_shapes.h"
#include "base/math.h"

namespace juno::gpu {

// 2^n for n <= 0, 0 below 2^-100.
JUNO_GPU float power(int32_t n) { return n < -100 ? 0.0f : float_of(static_cast<uint32_t>(n + 127) << 23); }
// a - b without the undefined.
JUNO_GPU int32_t apart(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

// What one head's chunk comes to, beside o.
struct ChunkSums {
  float l;
  int32_t n;
};
// What the sums so far and those of the next chunk are multiplied with.
struct MergeStep {
  float keep, take;
  int32_t n;  // of both together
};
JUNO_GPU MergeStep merge_step(int32_t all, int32_t next) {
  const int32_t n = all > next ? all : next;
  return {power(apart(all, n)), power(apart(next, n)), n};
}

// A row, one head of the cache, and query heads that share it.
struct AttendTask {
  int row, first_head, kv_head, group;
  int position, first;  // positions that it sees: [first, position]
  int chunk_begin, chunk_end;
  bool brings_key;  // its last key and value are not in the cache yet
  const int32_t* pages;

  JUNO_GPU AttendTask(const AttendArgs& a, int row_, int first_head_)
      : row(row_),
        first_head(first_head_),
        kv_head(first_head_ / (a.heads / a.places.kv_heads)),
        group(a.share) {
    position = a.places.positions[row];
    first = a.window != 0 && position - a.window + 1 > 0 ? position - a.window + 1 : 0;
    chunk_begin = first / 64;
    chunk_end = position / 64 + 1;
    brings_key = a.prepare.k != nullptr;
    pages = a.places.pages + a.places.first_page[row];
  }
  // Of a chunk's keys or values, whether it is there or not.
  JUNO_GPU int64_t page_of(int chunk) const { return pages[chunk < chunk_end ? chunk : chunk_end - 1]; }
  // The slots [begin, end) of a chunk that the position sees.
  JUNO_GPU int begin_of(int chunk) const { return first > chunk * 64 ? first - chunk * 64 : 0; }
  JUNO_GPU int end_of(int chunk) const {
    return position - chunk * 64 + 1 < 64 ? position - chunk * 64 + 1 : 64;
  }
  JUNO_GPU bool is_last(int chunk) const { return chunk == chunk_end - 1; }
  // As end_of, of those that are in the cache.
  JUNO_GPU int stored_end_of(int chunk) const {
    return end_of(chunk) - (brings_key && is_last(chunk) ? 1 : 0);
  }
  JUNO_GPU int64_t head(const AttendArgs& a, int h) const {
    return static_cast<int64_t>(row) * a.heads + first_head + h;
  }
};

// With a.parts: o of a chunk, and behind all of these its l and n.
JUNO_GPU float* part_of(const AttendArgs& a, int64_t head, int chunk) {
  return a.parts + (head * a.max_chunks + chunk) * a.places.value_dim;
}
JUNO_GPU ChunkSums* sums_of(const AttendArgs& a, int64_t head, int chunk) {
  const int64_t heads = static_cast<int64_t>(a.rows) * a.heads;
  return reinterpret_cast<ChunkSums*>(part_of(a, heads, 0)) + head * a.max_chunks + chunk;
}

// The row's queries in f32; its own key and, behind it, value as halves.
JUNO_GPU float* own_rows(const AttendLayout& layout) {
  return shared<float>(static_cast<size_t>(layout.own));
}
JUNO_GPU uint16_t* own_halves(const AttendLayout& layout) {
  return shared<uint16_t>(static_cast<size_t>(layout.halves));
}

// Threads that have a chunk together, and their part of the shared memory. A thread has a position of the
// chunk while dot products are found, and kColumns columns while values are added up; both of kHeads query
// heads.
template <int kRuns, int kHeads>
class AttendTeam {
 public:
  static constexpr int kWidth = kRuns * 8, kColumns = kWidth / kChunk;

  JUNO_GPU AttendTeam(const AttendArgs& a, const AttendTask& task, const AttendLayout& layout)
      : a_(a),
        task_(task),
        layout_(layout),
        size_(a.team),
        team_(thread() / size_),
        memory_(shared<unsigned char>() + team_ * layout.team) {}

  JUNO_GPU int team() const { return team_; }
  JUNO_GPU void meet() const { team_barrier(team_, size_); }
  // Keys or values of a chunk.
  JUNO_GPU void fetch(bool values, int chunk, int64_t page) const;
  // Keys are filled up with 0.
  JUNO_GPU void fill_up_keys() const;
  // The row's own key and value to its last chunk.
  JUNO_GPU void add_own() const;
  JUNO_GPU void score() const {
    each_heads([&](int first) { score_heads(first); });
  }
  // Scores become weights, in place, a warp a head.
  JUNO_GPU void weigh(int chunk, bool first) const;
  // The weighted values, to the parts or to what the team has so far; the first chunk begins.
  JUNO_GPU void add_values(int chunk, bool first) const {
    each_heads([&](int h) { add_values_of(h, chunk, first); });
  }

 private:
  struct alignas(kHeads * 4) OfHeads {
    float x[kHeads];
  };
  template <class T>
  JUNO_GPU T* at(int offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  JUNO_GPU int number() const { return thread() % size_; }  // in the team
  JUNO_GPU int place() const { return thread() % kChunk; }
  // each(first) of the heads that this thread has, kHeads at a time; there may be fewer.
  template <class Each>
  JUNO_GPU void each_heads(Each&& each) const {
    JUNO_UNROLL_BY(1)
    for (int h = number() / kChunk * kHeads; h < task_.group; h += size_ / kChunk * kHeads) each(h);
  }
  JUNO_GPU float* score_at(int head, int slot) const {
    return at<float>(layout_.scores) + (head / kHeads * kChunk + slot) * kHeads + head % kHeads;
  }
  JUNO_GPU OfHeads run(const float* q, const uint16_t* key) const;
  template <int kStep>
  JUNO_GPU OfHeads runs_from(const float* q, const uint16_t* key, int first) const;
  JUNO_GPU void score_heads(int first) const;
  JUNO_GPU void add_values_of(int first_head, int chunk, bool first) const;
  JUNO_GPU void put_values(int first_head, int chunk, bool first, const float (&o)[kHeads][kColumns]) const;
  JUNO_GPU void take_sums(int h, int chunk, const ChunkSums& next, bool first) const;

  const AttendArgs& a_;
  const AttendTask& task_;
  const AttendLayout& layout_;
  const int size_, team_;
  unsigned char* const memory_;
};

// Slots that are stored; a commit each, with nothing where there is no chunk. All of a page may be read but
// what is written meanwhile.
template <int kRuns, int kHeads>
JUNO_GPU void AttendTeam<kRuns, kHeads>::fetch(bool values, int chunk, int64_t page) const {
  const int dim = values ? a_.places.value_dim : a_.places.key_dim;
  const int end = chunk >= task_.chunk_end ? 0 : task_.is_last(chunk) ? task_.stored_end_of(chunk) : kChunk;
  const int piece = lane() % kRuns * 8, step = size_ / kRuns, stride = values ? kWidth : layout_.key_stride;
  int s = number() / kRuns;
  const uint16_t* from = (values ? a_.places.values : a_.places.keys) +
                         ((page * a_.places.kv_heads + task_.kv_head) * kChunk + s) * dim + piece;
  uint16_t* to = at<uint16_t>(values ? layout_.values : layout_.keys) + s * stride + piece;
  const int here = dim - piece < 8 ? dim - piece : 8;
  JUNO_UNROLL_BY(4)
  for (; s < end; s += step, from += step * dim, to += step * stride) {
    if (dim % 8 == 0) {
      if (here > 0) copy_async16(to, from);
    } else {
      JUNO_UNROLL_BY(1)
      for (int i = 0; i < here; ++i) to[i] = from[i];
    }
  }
  copies_commit();
}

template <int kRuns, int kHeads>
JUNO_GPU void AttendTeam<kRuns, kHeads>::fill_up_keys() const {
  const int dim = a_.places.key_dim, rest = kWidth - dim;
  JUNO_UNROLL_BY(1)
  for (int i = number(); i < kChunk * rest; i += size_)
    at<uint16_t>(layout_.keys)[i / rest * layout_.key_stride + dim + i % rest] = 0;
}

template <int kRuns, int kHeads>
JUNO_GPU void AttendTeam<kRuns, kHeads>::add_own() const {
  const uint16_t* const own = own_halves(layout_);
  const int slot = task_.position % kChunk;
  JUNO_UNROLL_BY(1)
  for (int i = number(); i < kWidth; i += size_) {
    at<uint16_t>(layout_.keys)[slot * layout_.key_stride + i] = own[i];
    at<uint16_t>(layout_.values)[slot * kWidth + i] = own[kWidth + i];
  }
}

// A run of eight elements of a key, one chain a head.
template <int kRuns, int kHeads>
JUNO_GPU auto AttendTeam<kRuns, kHeads>::run(const float* q, const uint16_t* key) const -> OfHeads {
  const Quad32 eight = *reinterpret_cast<const Quad32*>(key);
  float k[8];
  JUNO_UNROLL
  for (int i = 0; i < 8; ++i) k[i] = half_to_float(static_cast<uint16_t>(eight.x[i / 2] >> (i % 2 * 16)));
  OfHeads dot;
  JUNO_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    const auto* const four = reinterpret_cast<const Floats4*>(q + h * kWidth);
    const Floats4 low = four[0], high = four[1];
    float sum = 0;
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) sum = fma(low.x[i], k[i], sum);
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) sum = fma(high.x[i], k[4 + i], sum);
    dot.x[h] = sum;
  }
  return dot;
}

// Runs first, first + kStep … by the halving tree, which adds the farthest first.
template <int kRuns, int kHeads>
template <int kStep>
JUNO_GPU auto AttendTeam<kRuns, kHeads>::runs_from(const float* q, const uint16_t* key, int first) const
    -> OfHeads {
  if constexpr (kStep == kRuns) {
    return run(q + first * 8, key + first * 8);
  } else {
    OfHeads sum = runs_from<2 * kStep>(q, key, first);
    const OfHeads other = runs_from<2 * kStep>(q, key, first + kStep);
    JUNO_UNROLL
    for (int h = 0; h < kHeads; ++h) sum.x[h] = sum.x[h] + other.x[h];
    return sum;
  }
}

// Of all positions, seen or not. The tree's last steps are a loop, so that its text stays short.
template <int kRuns, int kHeads>
JUNO_GPU void AttendTeam<kRuns, kHeads>::score_heads(int first) const {
  constexpr int kPieces = kRuns == 8 ? 2 : 4;
  const float* const q = own_rows(layout_) + first * kWidth;
  const uint16_t* const key = at<uint16_t>(layout_.keys) + place() * layout_.key_stride;
  OfHeads sum = {}, before = {};
  JUNO_UNROLL_BY(1)
  for (int p = 0; p < kPieces; ++p) {
    // 0, 2, 1, 3: neighbours by two are added first.
    OfHeads next = runs_from<kPieces>(q, key, kPieces == 4 ? p / 2 + p % 2 * 2 : p);
    const bool second = p % 2 != 0;
    JUNO_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      if (second) next.x[h] = sum.x[h] + next.x[h];
      if (p == 3) next.x[h] = before.x[h] + next.x[h];
      if (p == 1) before.x[h] = next.x[h];
    }
    sum = next;
  }
  *reinterpret_cast<OfHeads*>(score_at(first, place())) = sum;
}

// What a chunk's weights come to, with those of the team's chunks before it.
template <int kRuns, int kHeads>
JUNO_GPU void AttendTeam<kRuns, kHeads>::take_sums(int h, int chunk, const ChunkSums& next,
                                                   bool first) const {
  if (a_.parts) {
    *sums_of(a_, task_.head(a_, h), chunk) = next;
    return;
  }
  ChunkSums& all = at<ChunkSums>(layout_.sums)[h];
  const MergeStep by = first ? MergeStep{0, 1, next.n} : merge_step(all.n, next.n);
  all = {first ? next.l : all.l * by.keep + next.l * by.take, by.n};
  at<MergeStep>(layout_.steps)[h] = by;
}

template <int kRuns, int kHeads>
JUNO_GPU void AttendTeam<kRuns, kHeads>::weigh(int chunk, bool first) const {
  const int begin = task_.begin_of(chunk), end = task_.end_of(chunk);
  JUNO_UNROLL_BY(1)
  for (int h = number() / kWarp; h < task_.group; h += size_ / kWarp) {
    if (a_.capped) {
      JUNO_UNROLL_BY(1)
      for (int slot = lane(); slot < kChunk; slot += kWarp)
        *score_at(h, slot) = tanh(*score_at(h, slot) * a_.before);
    }
    float w[2];
    int32_t n[2];
    int32_t top = static_cast<int32_t>(0x80000000u);
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int slot = i * kWarp + lane();
      const bool seen = slot >= begin && slot < end;
      const float dot = seen ? *score_at(h, slot) : 0.0f;
      const float t = dot * a_.after;
      n[i] = rne_int(t);
      w[i] = exp2_poly(t - rne(t));
      if (seen && n[i] > top) top = n[i];
    }
    top = warp_max(top);
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int slot = i * kWarp + lane();
      w[i] = slot >= begin && slot < end ? w[i] * power(apart(n[i], top)) : 0.0f;
      *score_at(h, slot) = w[i];
    }
    float l = w[0] + w[1];
    JUNO_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) l = l + shuffle_xor(l, mask);
    if (lane() == 0) take_sums(h, chunk, {l, top}, first);
  }
}

// Slots in order.
template <int kRuns, int kHeads>
JUNO_GPU void AttendTeam<kRuns, kHeads>::add_values_of(int first_head, int chunk, bool first) const {
  constexpr int kTogether = 8;
  struct alignas(kColumns * 2) Halves {
    uint16_t x[kColumns];
  };
  const int column = place() * kColumns;
  const uint16_t* const values = at<uint16_t>(layout_.values) + column;
  float o[kHeads][kColumns] = {};
  const int end = task_.end_of(chunk);
  const auto add = [&](int s) {
    const Halves v = *reinterpret_cast<const Halves*>(values + s * kWidth);
    const auto w = *reinterpret_cast<const OfHeads*>(score_at(first_head, s));
    JUNO_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const float x = half_to_float(v.x[c]);
      JUNO_UNROLL
      for (int h = 0; h < kHeads; ++h) o[h][c] = fma(w.x[h], x, o[h][c]);
    }
  };
  int s = task_.begin_of(chunk);
  JUNO_UNROLL_BY(1)
  for (; s + kTogether <= end; s += kTogether) {
    JUNO_UNROLL
    for (int i = 0; i < kTogether; ++i) add(s + i);
  }
  JUNO_UNROLL_BY(1)
  for (; s < end; ++s) add(s);
  put_values(first_head, chunk, first, o);
}

// To the parts, or to what the team has so far.
template <int kRuns, int kHeads>
JUNO_GPU void AttendTeam<kRuns, kHeads>::put_values(int first_head, int chunk, bool first,
                                                    const float (&o)[kHeads][kColumns]) const {
  const int column = place() * kColumns, dim = a_.places.value_dim;
  const int64_t apart = int64_t{a_.max_chunks} * dim;  // from head to head
  const int heads = task_.group - first_head;
  if (column >= dim) return;
  if (a_.parts) {
    float* part = part_of(a_, task_.head(a_, first_head), chunk) + column;
    JUNO_UNROLL
    for (int h = 0; h < kHeads; ++h, part += apart) {
      JUNO_UNROLL
      for (int c = 0; c < kColumns; ++c)
        if (h < heads && column + c < dim) part[c] = o[h][c];
    }
    return;
  }
  JUNO_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    float* const all = at<float>(layout_.o) + (first_head + h) * kWidth + column;
    const MergeStep by = h < heads && !first ? at<MergeStep>(layout_.steps)[first_head + h] : MergeStep{};
    JUNO_UNROLL
    for (int c = 0; c < kColumns; ++c)
      if (h < heads) all[c] = first ? o[h][c] : all[c] * by.keep + o[h][c] * by.take;
  }
}

// Whether the row is not here, or not served by these kernels.
JUNO_GPU bool is_left(const AttendArgs& a, int row) {
  return a.places.positions[row] < 0 || (a.skip_runs != 0 && in_run(a.places, row, a.rows));
}

// Queries to shared memory, a warp a head, and where this block has the row's last chunk its own key and
// value, which the first of the blocks that share them stores. Queries and keys are filled up with 0.
JUNO_GPU void prepare_task(const AttendArgs& a, const AttendTask& task, const AttendLayout& layout,
                           bool has_last) {
  const PrepareArgs& from = a.prepare;
  const Places& p = a.places;
  const bool keeps = task.first_head % (a.heads / p.kv_heads) == 0;
  const int heads = task.group + (task.brings_key && has_last ? 1 : 0), width = layout.width;
  JUNO_UNROLL_BY(1)
  for (int h = warp(); h < heads; h += warps()) {
    const bool is_q = h < task.group;
    float* const y = own_rows(layout) + (is_q ? h : layout.key_row) * width;
    prepare_head_of(from, task.row, is_q ? task.first_head + h : a.heads + task.kv_head, a.heads, y);
    uint16_t* const key = is_q ? nullptr : cache_row(p, p.keys, p.key_dim, task.row, task.kv_head);
    JUNO_UNROLL_BY(1)
    for (int i = lane(); i < width; i += kWarp) {
      if (i >= p.key_dim) y[i] = 0;
      if (is_q) continue;
      own_halves(layout)[i] = float_to_half(y[i]);
      if (keeps && i < p.key_dim) key[i] = own_halves(layout)[i];
    }
  }
  if (heads == task.group) return;
  const float* const v = from.v + task.row * from.v_stride + task.kv_head * p.value_dim;
  uint16_t* const value = cache_row(p, p.values, p.value_dim, task.row, task.kv_head);
  JUNO_UNROLL_BY(1)
  for (int i = thread(); i < p.value_dim; i += threads()) {
    own_halves(layout)[width + i] = float_to_half(v[i]);
    if (keeps) value[i] = own_halves(layout)[width + i];
  }
}

// What the teams' chunks come to, a chunk or what a lone team made of all, from the left.
template <int kWidth>
JUNO_GPU void merge_teams(const AttendArgs& a, const AttendTask& task, const AttendLayout& layout,
                          int teams) {
  const int dim = a.places.value_dim, chunks = task.chunk_end - task.chunk_begin;
  JUNO_UNROLL_BY(1)
  for (int i = thread(); i < task.group * kWidth; i += threads()) {
    const int h = i / kWidth, column = i % kWidth;
    if (column >= dim) continue;
    ChunkSums now{};
    float o = 0;
    JUNO_UNROLL_BY(1)
    for (int t = 0; t < teams && t < chunks; ++t) {
      const auto team = static_cast<size_t>(t) * static_cast<size_t>(layout.team);
      const ChunkSums next = shared<ChunkSums>(team + static_cast<size_t>(layout.sums))[h];
      const float x = shared<float>(team + static_cast<size_t>(layout.o))[i];
      const MergeStep by = merge_step(now.n, next.n);
      o = t == 0 ? x : o * by.keep + x * by.take;
      now = t == 0 ? next : ChunkSums{now.l * by.keep + next.l * by.take, by.n};
    }
    a.y[task.head(a, h) * dim + column] = o / now.l;
  }
}

// Grid: chunks, query heads by a.share, rows. Keys and values take turns: what is added up now, what is asked
// for next. One text of the asking serves the first chunk too, for code that runs once waits for its
// instructions.
template <int kRuns, int kHeads>
JUNO_GPU void attend_task(const AttendArgs& a, const AttendTask& task, const Spot& at) {
  const int teams = threads() / a.team, stride = at.across * teams;
  const AttendLayout layout(a, teams);
  const AttendTeam<kRuns, kHeads> team(a, task, layout);
  const int begin = task.chunk_begin + at.x * teams + team.team();
  int chunk = begin;
  int64_t page = task.page_of(begin);
  JUNO_UNROLL_BY(1)
  for (int step = -2; step <= 0 || chunk < task.chunk_end; ++step) {
    const bool values = step % 2 != 0;
    if (step == 0) {
      team.fill_up_keys();
      if (task.brings_key) wait_dependency();
      prepare_task(a, task, layout, (task.chunk_end - 1 - task.chunk_begin) / teams % at.across == at.x);
      barrier();
      if (chunk >= task.chunk_end) break;
    }
    int next = begin;
    if (step >= 0) {
      next = chunk + stride;
      if (!values) {
        page = task.page_of(next);
        copies_wait<1>();
        if (task.brings_key && task.is_last(chunk)) team.add_own();
        team.meet();
        team.score();
      } else {
        team.weigh(chunk, chunk == begin);
        copies_wait<1>();
        team.meet();
        team.add_values(chunk, chunk == begin);
        chunk = next;
      }
      team.meet();
    }
    team.fetch(values, next, page);
  }
  if (a.parts) return;
  barrier();
  merge_teams<kRuns * 8>(a, task, layout, teams);
}
template <int kRuns, int kHeads>
JUNO_GPU void attend(const AttendArgs& a) {
  trigger_dependents();
  // Earlier passes left all keys that a row alone in its sequence finds in the cache: these are fetched
  // before the kernels before this one have ended.
  if (!a.prepare.k) wait_dependency();
  const Spot at = spot();
  if (is_left(a, at.z)) return wait_dependency();
  attend_task<kRuns, kHeads>(a, AttendTask(a, at.z, at.y * a.share), at);
}

// A row's parts of one head and some columns, in shared memory span by span. The parts are on their way while
// the steps are found.
class AttendMerge {
 public:
  JUNO_GPU AttendMerge(const AttendArgs& a, const AttendTask& task, int column)
      : a_(a), task_(task), shape_(a), head_(task.head(a, 0)), column_(column) {}

  JUNO_GPU void run() {
    for (int begin = task_.chunk_begin; begin < task_.chunk_end; begin += shape_.span) {
      const int left = task_.chunk_end - begin, count = left < shape_.span ? left : shape_.span;
      barrier();
      fetch(begin, count);
      find_steps(begin, count);
      copies_wait<0>();
      barrier();
      if (warp() < shape_.wide) add(begin == task_.chunk_begin, count);
    }
    const int column = column_ + thread();
    if (warp() < shape_.wide && column < a_.places.value_dim)
      a_.y[head_ * a_.places.value_dim + column] = o_ / l_;
  }

 private:
  JUNO_GPU float* parts() const { return shared<float>(); }  // [span, columns]
  JUNO_GPU Floats4* steps() const {                          // keep, take, l · take, l
    return shared<Floats4>(static_cast<size_t>(shape_.steps));
  }

  JUNO_GPU void fetch(int begin, int count) const {
    const int together = warps() / shape_.wide, column = warp() % shape_.wide * kWarp + lane();
    if (column_ + column < a_.places.value_dim && warp() / shape_.wide < together) {
      const float* const part = part_of(a_, head_, begin) + column_ + column;
      JUNO_UNROLL_BY(8)
      for (int c = warp() / shape_.wide; c < count; c += together)
        copy_async<4>(parts() + c * shape_.columns() + column, part + c * a_.places.value_dim);
    }
    copies_commit();
  }

  // A chunk a lane. The greatest n up to each is found by doubling, in each warp alone, then among warps.
  JUNO_GPU void find_steps(int begin, int count) {
    const ChunkSums mine = sums_of(a_, head_, begin)[thread() < count ? thread() : count - 1];
    int32_t top = mine.n;
    JUNO_UNROLL
    for (int step = 1; step < kWarp; step *= 2) {
      const int32_t left = shuffle(top, lane() >= step ? lane() - step : lane());
      top = left > top ? left : top;
    }
    auto* const tops = shared<int32_t>(static_cast<size_t>(shape_.tops));
    if (lane() == kWarp - 1 && thread() < shape_.span) tops[warp()] = top;
    barrier();
    int32_t before = before_;
    JUNO_UNROLL_BY(1)
    for (int w = 0; w * kWarp < count; ++w) {
      if (w < warp()) before = tops[w] > before ? tops[w] : before;
      before_ = tops[w] > before_ ? tops[w] : before_;
    }
    const int32_t left = shuffle(top, lane() > 0 ? lane() - 1 : 0);
    const int32_t all = lane() > 0 && left > before ? left : before;
    top = top > before ? top : before;
    const float take = power(apart(mine.n, top));
    if (thread() < count) steps()[thread()] = {{power(apart(all, top)), take, mine.l * take, mine.l}};
  }

  JUNO_GPU void add(bool first, int count) {
    const float* const part = parts() + thread();
    int c = 0;
    if (first) o_ = part[0], l_ = steps()[c++].x[3];
    JUNO_UNROLL_BY(16)
    for (; c < count; ++c) {
      const Floats4 by = steps()[c];
      o_ = o_ * by.x[0] + part[c * shape_.columns()] * by.x[1];
      l_ = l_ * by.x[0] + by.x[2];
    }
  }

  const AttendArgs& a_;
  const AttendTask& task_;
  const MergeShape shape_;
  const int64_t head_;
  const int column_;
  float o_ = 0, l_ = 0;
  int32_t before_ = static_cast<int32_t>(0x80000000u);  // the greatest n of earlier spans
};

// Grid: pieces of columns, heads, rows.
JUNO_GPU void attend_merge_at(const AttendArgs& a, const Spot& at) {
  if (is_left(a, at.z)) return;
  const AttendTask task(a, at.z, at.y);
  AttendMerge(a, task, at.x * MergeShape(a).columns()).run();
}

#define JUNO_ATTEND_BODY(X, width, heads) \
  JUNO_GPU void attend_##width##_##heads(const AttendArgs& a) { attend<width / 8, heads>(a); }
JUNO_ATTENDS(JUNO_ATTEND_BODY, )
#undef JUNO_ATTEND_BODY
JUNO_GPU void attend_merge(const AttendArgs& a) {
  begin();
  attend_merge_at(a, spot());
}

}  // namespace juno::gpu
