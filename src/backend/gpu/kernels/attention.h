// SPDX-License-Identifier: Apache-2.0
// Attention of rows that stand alone (docs/numerics.md §6), at the pace of the memory: a team of four warps
// has a chunk of one head of the cache and all query heads that share it, and asks for the next one while it
// adds up. A block merges its teams' chunks from the left where it has them all, else attend_merge does. What
// has to be done to q, k and v before is done here too where no other row wants to see it.
#pragma once
#include "backend/gpu/kernels/head.h"
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

// A row, one head of the cache, and the query heads that share it.
struct AttendTask {
  int row, kv_head, group;
  int position, first;  // positions that it sees: [first, position]
  int chunk_begin, chunk_end;
  bool brings_key;  // its last key and value are not in the cache yet
  const int32_t* pages;

  JUNO_GPU AttendTask(const AttendArgs& a, int row_, int kv_head_)
      : row(row_), kv_head(kv_head_), group(a.heads / a.places.kv_heads) {
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
    return static_cast<int64_t>(row) * a.heads + kv_head * group + h;
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

// Four warps and their part of the shared memory. kEven: heads are multiples of 8, as they are in every model
// that is used; others go the same way in smaller steps.
template <bool kEven>
class AttendTeam {
 public:
  JUNO_GPU AttendTeam(const AttendArgs& a, const AttendTask& task, const AttendLayout& layout)
      : a_(a),
        task_(task),
        layout_(layout),
        team_(thread() / kTeam),
        memory_(shared<unsigned char>() + team_ * layout.team) {}

  JUNO_GPU void meet() const { team_barrier(team_, kTeam); }
  JUNO_GPU void fetch_keys(int chunk, int64_t page) const {
    fetch(a_.places.keys + slots_before(page) * a_.places.key_dim, a_.places.key_dim, chunk, layout_.keys);
  }
  JUNO_GPU void fetch_values(int chunk, int64_t page) const {
    fetch(a_.places.values + slots_before(page) * a_.places.value_dim, a_.places.value_dim, chunk,
          layout_.values);
  }
  // The row's own key and value to its last chunk.
  JUNO_GPU void add_own() const;
  JUNO_GPU void load_queries(int first);
  // q·k of the heads [first, first + kHeadTile), whose queries are loaded.
  JUNO_GPU void score(int chunk, int first) const;
  // Scores become weights, in place, a warp a head.
  JUNO_GPU void weigh(int chunk) const;
  // The weighted values, to the memory of the team or to the parts.
  JUNO_GPU void add_values(int chunk) const;

 private:
  template <class T>
  JUNO_GPU T* at(int offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  JUNO_GPU int number() const { return thread() % kTeam; }  // in the team
  JUNO_GPU float* score_at(int head, int slot) const {
    return at<float>(layout_.scores) + (head / kHeadTile * 64 + slot) * kHeadTile + head % kHeadTile;
  }
  JUNO_GPU int64_t slots_before(int64_t page) const {
    return (page * a_.places.kv_heads + task_.kv_head) * 64;
  }
  JUNO_GPU void fetch(const uint16_t* from, int dim, int chunk, int offset) const;
  JUNO_GPU void load_run(int slot, int from, float (&k)[8]) const;
  template <int kLanes>
  JUNO_GPU void score_by(int chunk, int first) const;
  template <int kHeads, bool kWhole>
  JUNO_GPU void add_slots(int h, int d, int begin, int end, float (&o)[kHeads][2]) const;
  template <int kHeads>
  JUNO_GPU void add_values_of(int chunk) const;

  const AttendArgs& a_;
  const AttendTask& task_;
  const AttendLayout& layout_;
  const int team_;
  unsigned char* const memory_;
  float q_[kHeadTile][8];  // this lane's run
};

// Slots that are seen and stored; a commit each, with nothing where there is no chunk.
template <bool kEven>
JUNO_GPU void AttendTeam<kEven>::fetch(const uint16_t* from, int dim, int chunk, int offset) const {
  if (chunk < task_.chunk_end) {
    auto* const to = at<uint16_t>(offset);
    const int begin = task_.begin_of(chunk) * dim, end = task_.stored_end_of(chunk) * dim;
    if (kEven) {
      JUNO_UNROLL_BY(8)
      for (int i = begin + number() * 8; i < end; i += kTeam * 8) copy_async16(to + i, from + i);
    } else {
      for (int i = begin + number(); i < end; i += kTeam) to[i] = from[i];
    }
  }
  copies_commit();
}

template <bool kEven>
JUNO_GPU void AttendTeam<kEven>::add_own() const {
  const Places& p = a_.places;
  const auto add = [&](int dim, int row, int offset, uint16_t* pages) {
    const float* const own = shared<float>(static_cast<size_t>(layout_.own)) + row * p.key_dim;
    uint16_t* const slot = at<uint16_t>(offset) + task_.position % 64 * dim;
    uint16_t* const kept = cache_row(p, pages, dim, task_.row, task_.kv_head);
    JUNO_UNROLL_BY(1)
    for (int i = number(); i < dim; i += kTeam) slot[i] = kept[i] = float_to_half(own[i]);
  };
  add(p.key_dim, task_.group, layout_.keys, p.keys);
  add(p.value_dim, task_.group + 1, layout_.values, p.values);
}

template <bool kEven>
JUNO_GPU void AttendTeam<kEven>::load_queries(int first) {
  const int dim = a_.places.key_dim;
  const float* const queries = shared<float>(static_cast<size_t>(layout_.own));
  const int lanes = dim > 128 ? 32 : dim > 64 ? 16 : dim > 32 ? 8 : 4, from = lane() % lanes * 8;
  JUNO_UNROLL
  for (int h = 0; h < kHeadTile; ++h) {
    const float* const q = queries + (first + h) * dim;
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) q_[h][i] = first + h < task_.group && from + i < dim ? q[from + i] : 0.0f;
  }
}

template <bool kEven>
JUNO_GPU void AttendTeam<kEven>::load_run(int slot, int from, float (&k)[8]) const {
  const int dim = a_.places.key_dim;
  const uint16_t* const key = at<uint16_t>(layout_.keys) + slot * dim + from;
  if (kEven) {
    Quad32 x = {};
    if (from < dim) x = *reinterpret_cast<const Quad32*>(key);
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) k[i] = half_to_float(static_cast<uint16_t>(x.x[i / 2] >> (i % 2 * 16)));
  } else {
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) k[i] = from + i < dim ? half_to_float(key[i]) : 0.0f;
  }
}

// A run of eight elements a lane, kLanes of them a key. While the tree adds lanes up, each step halves the
// dots that a lane goes on with.
template <bool kEven>
template <int kLanes>
JUNO_GPU void AttendTeam<kEven>::score_by(int chunk, int first) const {
  constexpr int kSets = 4, kKeys = kWarp / kLanes, kDots = kSets * kHeadTile;
  constexpr bool kAll = kSets * kTeam / kLanes > 64;  // more slots than there are
  const int begin = task_.begin_of(chunk), end = task_.end_of(chunk), part = lane() % kLanes;
  JUNO_UNROLL_BY(1)
  for (int base = 0; base < end; base += kSets * kTeam / kLanes) {
    if (base + kSets * kTeam / kLanes <= begin) continue;
    const int mine = base + number() / kWarp * kKeys + lane() / kLanes;
    float dots[kDots] = {};
    JUNO_UNROLL
    for (int set = 0; set < kSets; ++set) {
      const int slot = mine + set * kTeam / kLanes;
      float k[8];
      load_run(kAll && slot >= 64 ? 63 : slot, part * 8, k);
      JUNO_UNROLL
      for (int i = 0; i < 8; ++i) {
        JUNO_UNROLL
        for (int h = 0; h < kHeadTile; ++h)
          dots[set * kHeadTile + h] = fma(q_[h][i], k[i], dots[set * kHeadTile + h]);
      }
    }
    int at = 0, left = kDots;
    JUNO_UNROLL
    for (int mask = kLanes / 2; mask > 0; mask /= 2) {
      if (left == 1) {
        dots[0] = dots[0] + shuffle_xor(dots[0], mask);
        continue;
      }
      left /= 2;
      const bool high = (part & mask) != 0;
      JUNO_UNROLL
      for (int i = 0; i < kDots / 2; ++i) {
        if (i >= left) break;
        const float other = shuffle_xor(high ? dots[i] : dots[left + i], mask);
        dots[i] = (high ? dots[left + i] : dots[i]) + other;
      }
      at += high ? left : 0;
    }
    JUNO_UNROLL
    for (int i = 0; i < kDots; ++i) {
      if (i >= left) break;
      const int slot = mine + (at + i) / kHeadTile * (kTeam / kLanes);
      if (!kAll || slot < 64) *score_at(first + (at + i) % kHeadTile, slot) = dots[i];
    }
  }
}
template <bool kEven>
JUNO_GPU void AttendTeam<kEven>::score(int chunk, int first) const {
  const int dim = a_.places.key_dim;
  if (dim > 128) score_by<32>(chunk, first);
  else if (dim > 64) score_by<16>(chunk, first);
  else if (dim > 32) score_by<8>(chunk, first);
  else score_by<4>(chunk, first);
}

template <bool kEven>
JUNO_GPU void AttendTeam<kEven>::weigh(int chunk) const {
  const int begin = task_.begin_of(chunk), end = task_.end_of(chunk);
  for (int h = number() / kWarp; h < task_.group; h += kTeam / kWarp) {
    float w[2];
    int32_t n[2];
    int32_t top = static_cast<int32_t>(0x80000000u);
    JUNO_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int slot = i * kWarp + lane();
      const bool seen = slot >= begin && slot < end;
      const float dot = seen ? *score_at(h, slot) : 0.0f;
      const float t = a_.capped ? tanh(dot * a_.before) * a_.after : dot * a_.after;
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
    if (lane() == 0) at<ChunkSums>(layout_.sums)[h] = {l, top};
  }
}

template <bool kEven>
template <int kHeads, bool kWhole>
JUNO_GPU void AttendTeam<kEven>::add_slots(int h, int d, int begin, int end, float (&o)[kHeads][2]) const {
  const int dim = a_.places.value_dim;
  const uint16_t* const values = at<uint16_t>(layout_.values) + d;
  struct alignas(kHeads * 4) Weights {
    float x[kHeads];
  };
  const float* const weights = score_at(h, 0);
  const auto add = [&](int s) {
    uint32_t two = 0;
    if (kEven || dim % 2 == 0) two = *reinterpret_cast<const uint32_t*>(values + s * dim);
    else two = values[s * dim] | (d + 1 < dim ? uint32_t{values[s * dim + 1]} << 16 : 0u);
    const float low = half_to_float(static_cast<uint16_t>(two)),
                high = half_to_float(static_cast<uint16_t>(two >> 16));
    const auto w = *reinterpret_cast<const Weights*>(weights + s * kHeadTile);
    JUNO_UNROLL
    for (int j = 0; j < kHeads; ++j) {
      o[j][0] = fma(w.x[j], low, o[j][0]);
      o[j][1] = fma(w.x[j], high, o[j][1]);
    }
  };
  if constexpr (kWhole) {
    JUNO_UNROLL_BY(16)
    for (int s = 0; s < 64; ++s) add(s);
  } else {
    JUNO_UNROLL_BY(4)
    for (int s = begin; s < end; ++s) add(s);
  }
}

// Two columns of kHeads heads a thread, slots in order.
template <bool kEven>
template <int kHeads>
JUNO_GPU void AttendTeam<kEven>::add_values_of(int chunk) const {
  const int dim = a_.places.value_dim, pairs = (dim + 1) / 2, begin = task_.begin_of(chunk),
            end = task_.end_of(chunk), tiles = (task_.group + kHeads - 1) / kHeads;
  for (int i = number(); i < tiles * pairs; i += kTeam) {
    const int h = i / pairs * kHeads, d = i % pairs * 2;
    float o[kHeads][2] = {};
    if (kEven && end - begin == 64) add_slots<kHeads, true>(h, d, begin, end, o);
    else add_slots<kHeads, false>(h, d, begin, end, o);
    JUNO_UNROLL
    for (int j = 0; j < kHeads; ++j) {
      if (h + j >= task_.group) break;
      float* const to =
          a_.parts ? part_of(a_, task_.head(a_, h + j), chunk) : at<float>(layout_.o) + (h + j) * dim;
      to[d] = o[j][0];
      if (d + 1 < dim) to[d + 1] = o[j][1];
      if (a_.parts && d == 0) *sums_of(a_, task_.head(a_, h + j), chunk) = at<ChunkSums>(layout_.sums)[h + j];
    }
  }
}
template <bool kEven>
JUNO_GPU void AttendTeam<kEven>::add_values(int chunk) const {
  const int items = (a_.places.value_dim + 1) / 2 * task_.group;  // of one head each
  if (items >= 4 * kTeam) add_values_of<4>(chunk);
  else if (items >= 2 * kTeam) add_values_of<2>(chunk);
  else add_values_of<1>(chunk);
}

// What a block's chunks of a row come to, in its shared memory.
class AttendSums {
 public:
  JUNO_GPU AttendSums(const AttendArgs& a, const AttendTask& task, const AttendLayout& layout)
      : a_(a), task_(task), layout_(layout) {}

  // Takes in the chunks of `count` teams; the first of a row begins.
  JUNO_GPU void merge(int count, bool first);
  JUNO_GPU void write() const;

 private:
  JUNO_GPU float* all() const { return shared<float>(static_cast<size_t>(layout_.all)); }
  JUNO_GPU ChunkSums* states(int round) const {
    return shared<ChunkSums>(static_cast<size_t>(layout_.states)) + round % 2 * task_.group;
  }

  const AttendArgs& a_;
  const AttendTask& task_;
  const AttendLayout& layout_;
  int round_ = 0;
};

JUNO_GPU void AttendSums::merge(int count, bool first) {
  const int dim = a_.places.value_dim;
  for (int i = thread(); i < task_.group * dim; i += threads()) {
    const int h = i / dim;
    ChunkSums now{};
    float o = 0;
    if (!first) now = states(round_)[h], o = all()[i];
    for (int t = 0; t < count; ++t) {
      const auto team = static_cast<size_t>(t) * static_cast<size_t>(layout_.team);
      const ChunkSums next = shared<ChunkSums>(team + static_cast<size_t>(layout_.sums))[h];
      const float x = shared<float>(team + static_cast<size_t>(layout_.o))[i];
      if (first && t == 0) {
        now = next, o = x;
        continue;
      }
      const MergeStep by = merge_step(now.n, next.n);
      now = {now.l * by.keep + next.l * by.take, by.n};
      o = o * by.keep + x * by.take;
    }
    all()[i] = o;
    if (i % dim == 0) states(round_ + 1)[h] = now;
  }
  ++round_;
}

JUNO_GPU void AttendSums::write() const {
  const int dim = a_.places.value_dim;
  for (int i = thread(); i < task_.group * dim; i += threads())
    a_.y[task_.head(a_, i / dim) * dim + i % dim] = all()[i] / states(round_)[i / dim].l;
}

// Whether the row is not here, or not served by these kernels.
JUNO_GPU bool is_left(const AttendArgs& a, int row) {
  return a.places.positions[row] < 0 || (a.skip_runs != 0 && in_run(a.places, row, a.rows));
}

// Queries to shared memory, and the row's own key and value where this block has its last chunk: a warp a
// head.
JUNO_GPU void prepare_task(const AttendArgs& a, const AttendTask& task, const AttendLayout& layout,
                           bool has_last) {
  const PrepareArgs& from = a.prepare;
  auto* const rows = shared<float>(static_cast<size_t>(layout.own));
  const int heads = task.group + (task.brings_key && has_last ? 1 : 0);
  JUNO_UNROLL_BY(1)
  for (int h = warp(); h < heads; h += warps()) {
    const int at = h < task.group ? task.kv_head * task.group + h : a.heads + task.kv_head;
    prepare_head_of(from, task.row, at, a.heads, rows + h * a.places.key_dim);
  }
  if (heads == task.group) return;
  const int dim = a.places.value_dim;
  const float* const v = from.v + task.row * from.v_stride + task.kv_head * dim;
  JUNO_UNROLL_BY(1)
  for (int i = thread(); i < dim; i += threads()) rows[heads * a.places.key_dim + i] = v[i];
}

// Grid: chunks, heads of the cache, rows.
template <bool kEven>
JUNO_GPU void attend_task(const AttendArgs& a, const AttendTask& task, const Spot& at) {
  const int teams = threads() / kTeam, stride = at.across * teams;
  const AttendLayout layout(a.places, a.heads, teams);
  AttendTeam<kEven> team(a, task, layout);
  AttendSums sums(a, task, layout);
  int base = task.chunk_begin + at.x * teams;
  int64_t page = task.page_of(base + thread() / kTeam);
  team.fetch_keys(base + thread() / kTeam, page);
  team.fetch_values(base + thread() / kTeam, page);
  if (task.brings_key) wait_dependency();
  prepare_task(a, task, layout, (task.chunk_end - 1 - task.chunk_begin) / teams % at.across == at.x);
  barrier();
  team.load_queries(0);
  for (; base < task.chunk_end; base += stride) {
    const int chunk = base + thread() / kTeam;
    if (chunk < task.chunk_end) {
      page = task.page_of(chunk + stride);
      copies_wait<1>();
      if (task.brings_key && task.is_last(chunk)) team.add_own();
      team.meet();
      for (int h = 0; h < task.group; h += kHeadTile) {
        if (task.group > kHeadTile) team.load_queries(h);
        team.score(chunk, h);
      }
      team.meet();
      team.fetch_keys(chunk + stride, page);
      team.weigh(chunk);
      copies_wait<1>();
      team.meet();
      team.add_values(chunk);
      team.meet();
      team.fetch_values(chunk + stride, page);
    }
    if (a.parts) continue;
    barrier();
    sums.merge(task.chunk_end - base < teams ? task.chunk_end - base : teams, base == task.chunk_begin);
    barrier();
  }
  if (!a.parts) sums.write();
}
JUNO_GPU void attend_at(const AttendArgs& a, const Spot& at) {
  if (is_left(a, at.z)) return wait_dependency();
  const AttendTask task(a, at.z, at.y);
  if (a.places.key_dim % 8 == 0 && a.places.value_dim % 8 == 0) attend_task<true>(a, task, at);
  else attend_task<false>(a, task, at);
}

// A row's parts of one head and 32 columns, in shared memory span by span.
class AttendMerge {
 public:
  JUNO_GPU AttendMerge(const AttendArgs& a, const AttendTask& task, int h, int column)
      : a_(a), task_(task), head_(task.head(a, h)), column_(column + lane()) {}

  JUNO_GPU void run() {
    for (int begin = task_.chunk_begin; begin < task_.chunk_end; begin += kMergeSpan) {
      const int left = task_.chunk_end - begin, count = left < kMergeSpan ? left : kMergeSpan;
      barrier();
      load(begin, count);
      barrier();
      find_steps(count);
      barrier();
      if (warp() == 0) add(begin == task_.chunk_begin, count);
    }
    if (warp() == 0 && column_ < a_.places.value_dim) a_.y[head_ * a_.places.value_dim + column_] = o_ / l_;
  }

 private:
  JUNO_GPU float* parts() const { return shared<float>(); }                            // [kMergeSpan, 32]
  JUNO_GPU Floats4* steps() const { return shared<Floats4>(kMergeSpan * kWarp * 4); }  // keep, take, l · take
  JUNO_GPU ChunkSums* sums() const { return shared<ChunkSums>(kMergeSpan * (kWarp * 4 + 16)); }

  JUNO_GPU void load(int begin, int count) const {
    if (column_ < a_.places.value_dim) {
      const float* const part = part_of(a_, head_, begin) + column_;
      JUNO_UNROLL_BY(16)
      for (int c = warp(); c < count; c += warps())
        parts()[c * kWarp + lane()] = part[c * a_.places.value_dim];
    }
    for (int c = thread(); c < count; c += threads()) sums()[c] = sums_of(a_, head_, begin)[c];
  }

  // A chunk a lane. The greatest n up to each is found by doubling, in each warp alone, then among warps.
  JUNO_GPU void find_steps(int count) {
    const int c = thread() < count ? thread() : count - 1;
    const ChunkSums mine = sums()[c];
    int32_t top = mine.n;
    JUNO_UNROLL
    for (int step = 1; step < kWarp; step *= 2) {
      const int32_t left = shuffle(top, lane() >= step ? lane() - step : lane());
      top = left > top ? left : top;
    }
    auto* const tops = shared<int32_t>(kMergeSpan * (kWarp * 4 + 24));
    if (lane() == kWarp - 1 && warp() < kMergeSpan / kWarp) tops[warp()] = top;
    barrier();
    int32_t before = before_;
    JUNO_UNROLL
    for (int w = 0; w < kMergeSpan / kWarp; ++w) {
      const int32_t other = w * kWarp < count ? tops[w] : before_;
      if (w < warp()) before = other > before ? other : before;
      before_ = other > before_ ? other : before_;
    }
    const int32_t left = shuffle(top, lane() > 0 ? lane() - 1 : 0);
    const int32_t all = lane() > 0 && left > before ? left : before;
    top = top > before ? top : before;
    const float take = power(apart(mine.n, top));
    if (thread() < count) steps()[c] = {{power(apart(all, top)), take, mine.l * take, mine.l}};
  }

  JUNO_GPU void add(bool first, int count) {
    int c = 0;
    if (first) o_ = parts()[lane()], l_ = steps()[c++].x[3];
    JUNO_UNROLL_BY(8)
    for (; c < count; ++c) {
      const Floats4 by = steps()[c];
      o_ = o_ * by.x[0] + parts()[c * kWarp + lane()] * by.x[1];
      l_ = l_ * by.x[0] + by.x[2];
    }
  }

  const AttendArgs& a_;
  const AttendTask& task_;
  const int64_t head_;
  const int column_;
  float o_ = 0, l_ = 0;
  int32_t before_ = static_cast<int32_t>(0x80000000u);  // the greatest n of earlier spans
};

// Grid: pieces of 32 columns, heads, rows.
JUNO_GPU void attend_merge_at(const AttendArgs& a, const Spot& at) {
  if (is_left(a, at.z)) return;
  const int group = a.heads / a.places.kv_heads;
  const AttendTask task(a, at.z, at.y / group);
  AttendMerge(a, task, at.y % group, at.x * kWarp).run();
}

// Earlier passes left all keys that a row alone in its sequence finds in the cache: these are fetched before
// the kernels before this one have ended.
JUNO_GPU void attend(const AttendArgs& a) {
  trigger_dependents();
  if (!a.prepare.k) wait_dependency();
  attend_at(a, spot());
}
JUNO_GPU void attend_merge(const AttendArgs& a) {
  begin();
  attend_merge_at(a, spot());
}

}  // namespace juno::gpu
