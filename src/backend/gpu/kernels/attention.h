// SPDX-License-Identifier: Apache-2.0
// Attention of rows that stand alone (docs/numerics.md §6), at the pace of the memory: a team of four warps
// has a chunk of one head of the cache and all query heads that share it, and asks for the next one while it
// adds up. A block merges its teams' chunks from the left where it has them all, else the last block to end.
#pragma once
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
  const int32_t* pages;

  JUNO_GPU AttendTask(const AttendArgs& a, int row_, int kv_head_)
      : row(row_), kv_head(kv_head_), group(a.heads / a.places.kv_heads) {
    position = a.places.positions[row];
    first = a.window != 0 && position - a.window + 1 > 0 ? position - a.window + 1 : 0;
    chunk_begin = first / 64;
    chunk_end = position / 64 + 1;
    pages = a.places.pages + a.places.first_page[row];
  }
  // Of a chunk's keys or values, whether it is there or not.
  JUNO_GPU int64_t page_of(int chunk) const { return pages[chunk < chunk_end ? chunk : chunk_end - 1]; }
  // The slots [begin, end) of a chunk that the position sees.
  JUNO_GPU int begin_of(int chunk) const { return first > chunk * 64 ? first - chunk * 64 : 0; }
  JUNO_GPU int end_of(int chunk) const {
    return position - chunk * 64 + 1 < 64 ? position - chunk * 64 + 1 : 64;
  }
  JUNO_GPU int64_t head(const AttendArgs& a, int h) const {
    return static_cast<int64_t>(row) * a.heads + kv_head * group + h;
  }
};

JUNO_GPU float* part_of(const AttendArgs& a, int64_t head, int chunk) {
  return a.parts + (head * a.max_chunks + chunk) * (a.places.value_dim + 2);
}

// Four warps and their part of the shared memory.
class AttendTeam {
 public:
  JUNO_GPU AttendTeam(const AttendArgs& a, const AttendTask& task, const AttendLayout& layout)
      : a_(a), task_(task), layout_(layout), team_(thread() / kTeam), memory_(shared<unsigned char>() + team_ * layout.team) {}

  JUNO_GPU void meet() const { team_barrier(team_, kTeam); }
  JUNO_GPU void fetch_keys(int chunk, int64_t page) const {
    fetch(a_.places.keys + slots_before(page) * a_.places.key_dim, a_.places.key_dim, chunk, layout_.keys);
  }
  JUNO_GPU void fetch_values(int chunk, int64_t page) const {
    fetch(a_.places.values + slots_before(page) * a_.places.value_dim, a_.places.value_dim, chunk,
          layout_.values);
  }
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

// Slots that are seen; a commit each, with nothing where there is no chunk.
JUNO_GPU void AttendTeam::fetch(const uint16_t* from, int dim, int chunk, int offset) const {
  if (chunk < task_.chunk_end) {
    auto* const to = at<uint16_t>(offset);
    const int begin = task_.begin_of(chunk) * dim, end = task_.end_of(chunk) * dim;
    if (dim % 8 == 0) {
      JUNO_UNROLL_BY(8)
      for (int i = begin + number() * 8; i < end; i += kTeam * 8) copy_async16(to + i, from + i);
    } else {
      for (int i = begin + number(); i < end; i += kTeam) to[i] = from[i];
    }
  }
  copies_commit();
}

JUNO_GPU void AttendTeam::load_queries(int first) {
  const int dim = a_.places.key_dim;
  const int lanes = dim > 128 ? 32 : dim > 64 ? 16 : dim > 32 ? 8 : 4, from = lane() % lanes * 8;
  JUNO_UNROLL
  for (int h = 0; h < kHeadTile; ++h) {
    const float* const q = a_.q + task_.head(a_, first + h) * dim;
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) q_[h][i] = first + h < task_.group && from + i < dim ? q[from + i] : 0.0f;
  }
}

JUNO_GPU void AttendTeam::load_run(int slot, int from, float (&k)[8]) const {
  const int dim = a_.places.key_dim;
  const uint16_t* const key = at<uint16_t>(layout_.keys) + slot * dim + from;
  if (dim % 8 == 0) {
    const Quad32 x = from < dim ? *reinterpret_cast<const Quad32*>(key) : Quad32{};
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) k[i] = half_to_float(static_cast<uint16_t>(x.x[i / 2] >> (i % 2 * 16)));
  } else {
    JUNO_UNROLL
    for (int i = 0; i < 8; ++i) k[i] = from + i < dim ? half_to_float(key[i]) : 0.0f;
  }
}

// A run of eight elements a lane, kLanes of them a key. While the tree adds lanes up, each step halves the
// dots that a lane goes on with.
template <int kLanes>
JUNO_GPU void AttendTeam::score_by(int chunk, int first) const {
  constexpr int kSets = 4, kKeys = kWarp / kLanes, kDots = kSets * kHeadTile;
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
      load_run(slot < 64 ? slot : 63, part * 8, k);
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
      if (slot < 64) *score_at(first + (at + i) % kHeadTile, slot) = dots[i];
    }
  }
}
JUNO_GPU void AttendTeam::score(int chunk, int first) const {
  const int dim = a_.places.key_dim;
  if (dim > 128) score_by<32>(chunk, first);
  else if (dim > 64) score_by<16>(chunk, first);
  else if (dim > 32) score_by<8>(chunk, first);
  else score_by<4>(chunk, first);
}

JUNO_GPU void AttendTeam::weigh(int chunk) const {
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

template <int kHeads, bool kWhole>
JUNO_GPU void AttendTeam::add_slots(int h, int d, int begin, int end, float (&o)[kHeads][2]) const {
  const int dim = a_.places.value_dim;
  const uint16_t* const values = at<uint16_t>(layout_.values) + d;
  struct alignas(kHeads * 4) Weights {
    float x[kHeads];
  };
  const float* const weights = score_at(h, 0);
  const auto add = [&](int s) {
    uint32_t two = 0;
    if (kWhole || dim % 2 == 0) two = *reinterpret_cast<const uint32_t*>(values + s * dim);
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
template <int kHeads>
JUNO_GPU void AttendTeam::add_values_of(int chunk) const {
  const int dim = a_.places.value_dim, pairs = (dim + 1) / 2, begin = task_.begin_of(chunk),
            end = task_.end_of(chunk), tiles = (task_.group + kHeads - 1) / kHeads;
  for (int i = number(); i < tiles * pairs; i += kTeam) {
    const int h = i / pairs * kHeads, d = i % pairs * 2;
    float o[kHeads][2] = {};
    if (end - begin == 64 && dim % 2 == 0) add_slots<kHeads, true>(h, d, begin, end, o);
    else add_slots<kHeads, false>(h, d, begin, end, o);
    JUNO_UNROLL
    for (int j = 0; j < kHeads; ++j) {
      if (h + j >= task_.group) break;
      float* const to = a_.parts ? part_of(a_, task_.head(a_, h + j), chunk)
                                 : at<float>(layout_.o) + (h + j) * dim;
      to[d] = o[j][0];
      if (d + 1 < dim) to[d + 1] = o[j][1];
      if (a_.parts && d == 0) {
        const ChunkSums sums = at<ChunkSums>(layout_.sums)[h + j];
        to[dim] = sums.l, to[dim + 1] = float_of(static_cast<uint32_t>(sums.n));
      }
    }
  }
}
JUNO_GPU void AttendTeam::add_values(int chunk) const {
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

// The parts of up to kHeadTile heads, in shared memory span by span.
class AttendMerge {
 public:
  JUNO_GPU AttendMerge(const AttendArgs& a, const AttendTask& task, int first)
      : a_(a), task_(task), first_(first), count_(task.group - first < kHeadTile ? task.group - first : kHeadTile) {}

  JUNO_GPU void run();

 private:
  struct Step {
    float keep, take, l;
  };
  JUNO_GPU ChunkSums* sums(int head) const { return shared<ChunkSums>() + head * kMergeSpan; }
  JUNO_GPU Step* steps(int head) const {
    return shared<Step>(kHeadTile * kMergeSpan * sizeof(ChunkSums)) + head * kMergeSpan;
  }
  JUNO_GPU void load(int begin, int end) const;
  JUNO_GPU void find_steps(int begin, int end);

  const AttendArgs& a_;
  const AttendTask& task_;
  const int first_, count_;
  int32_t before_ = static_cast<int32_t>(0x80000000u);  // the greatest n of earlier spans
};

JUNO_GPU void AttendMerge::load(int begin, int end) const {
  const int dim = a_.places.value_dim, span = end - begin;
  for (int i = thread(); i < count_ * span; i += threads()) {
    const float* const part = part_of(a_, task_.head(a_, first_ + i / span), begin + i % span);
    sums(i / span)[i % span] = {part[dim], static_cast<int32_t>(bits_of(part[dim + 1]))};
  }
}

// A warp a head: the greatest n up to each chunk is found by doubling.
JUNO_GPU void AttendMerge::find_steps(int begin, int end) {
  const int head = warp();
  if (head >= count_) return;
  for (int base = 0; base < end - begin; base += kWarp) {
    const int c = base + lane() < end - begin ? base + lane() : end - begin - 1;
    const ChunkSums mine = sums(head)[c];
    int32_t top = mine.n > before_ ? mine.n : before_;
    JUNO_UNROLL
    for (int step = 1; step < kWarp; step *= 2) {
      const int32_t left = shuffle(top, lane() >= step ? lane() - step : lane());
      top = left > top ? left : top;
    }
    const int32_t left = shuffle(top, lane() > 0 ? lane() - 1 : 0);
    const int32_t all = lane() > 0 ? left : before_;
    if (base + lane() < end - begin) steps(head)[c] = {power(apart(all, top)), power(apart(mine.n, top)), mine.l};
    before_ = shuffle(top, kWarp - 1);
  }
}

JUNO_GPU void AttendMerge::run() {
  const int dim = a_.places.value_dim;
  constexpr int kAhead = 16;  // loads of a thread under way
  for (int first = 0; first < count_ * dim; first += threads()) {
    const int i = first + thread() < count_ * dim ? first + thread() : 0;
    const float* const part = part_of(a_, task_.head(a_, first_ + i / dim), 0) + i % dim;
    float o = 0, l = 0;
    before_ = static_cast<int32_t>(0x80000000u);
    for (int begin = task_.chunk_begin; begin < task_.chunk_end; begin += kMergeSpan) {
      const int end = begin + kMergeSpan < task_.chunk_end ? begin + kMergeSpan : task_.chunk_end;
      barrier();
      load(begin, end);
      barrier();
      find_steps(begin, end);
      barrier();
      const Step* const steps_of = steps(i / dim) - begin;
      JUNO_UNROLL_BY(1)
      for (int c = begin; c < end; c += kAhead) {
        float x[kAhead];
        JUNO_UNROLL
        for (int j = 0; j < kAhead; ++j)
          x[j] = part[static_cast<int64_t>(c + j < end ? c + j : end - 1) * (dim + 2)];
        JUNO_UNROLL
        for (int j = 0; j < kAhead; ++j) {
          if (c + j >= end) break;
          const Step s = steps_of[c + j];
          const bool is_first = c + j == task_.chunk_begin;
          o = is_first ? x[j] : o * s.keep + x[j] * s.take;
          l = is_first ? s.l : l * s.keep + s.l * s.take;
        }
      }
    }
    if (first + thread() < count_ * dim) a_.y[task_.head(a_, first_) * dim + i] = o / l;
  }
}

// Whether all blocks of the task but this one have ended.
JUNO_GPU bool last_to_end(const AttendArgs& a, const AttendTask& task, int blocks) {
  uint32_t* const ticket = a.tickets + task.row * a.places.kv_heads + task.kv_head;
  auto* const is_last = shared<uint32_t>();
  fence();
  barrier();
  if (thread() == 0) {
    *is_last = atomic_add(ticket, 1) + 1 == static_cast<uint32_t>(blocks);
    if (*is_last) *ticket = 0;
  }
  barrier();
  const bool last = *is_last != 0;
  fence();
  return last;
}

// Grid: chunks, heads of the cache, rows.
JUNO_GPU void attend_at(const AttendArgs& a, const Spot& at) {
  if (a.places.positions[at.z] < 0 || (a.skip_runs != 0 && in_run(a.places, at.z, a.rows))) return;
  const AttendTask task(a, at.z, at.y);
  const int teams = threads() / kTeam, stride = at.across * teams;
  const AttendLayout layout(a.places, a.heads, teams);
  AttendTeam team(a, task, layout);
  AttendSums sums(a, task, layout);
  int chunk = task.chunk_begin + at.x * teams + thread() / kTeam;
  int64_t page = task.page_of(chunk);
  team.fetch_keys(chunk, page);
  team.fetch_values(chunk, page);
  team.load_queries(0);
  for (int base = task.chunk_begin + at.x * teams; base < task.chunk_end; base += stride, chunk += stride) {
    if (chunk < task.chunk_end) {
      page = task.page_of(chunk + stride);
      copies_wait<1>();
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
  if (!a.parts) {
    sums.write();
  } else if (last_to_end(a, task, at.across)) {
    for (int h = 0; h < task.group; h += kHeadTile) AttendMerge(a, task, h).run();
  }
}

JUNO_GPU void attend(const AttendArgs& a) {
  begin();
  attend_at(a, spot());
}

}  // namespace juno::gpu
