// SPDX-License-Identifier: Apache-2.0
// Attention on all threads: an item is some rows of one run and one head of the cache.
#include <algorithm>
#include <atomic>

#include "backend/cpu/cpu_ops.h"
#include "ops/rope_table.h"

namespace juno::cpu {
namespace {

static_assert(ops::kPagePositions == 64);  // the chunk that the kernels are written for

int blocks_of(const ops::Run& run) { return (run.rows + kAttendRows - 1) / kAttendRows; }

struct Block {
  const ops::Run& run;
  int32_t first, rows;  // of the run
};

// Block `index` of all runs, one run after the other.
Block find_block(std::span<const ops::Run> runs, int index) {
  auto run = runs.begin();
  for (; index >= blocks_of(*run); ++run) index -= blocks_of(*run);
  const int32_t first = index * kAttendRows;
  return {*run, first, std::min(kAttendRows, run->rows - first)};
}

}  // namespace

// An item whose chunks are done apart: those of [first, last) in this wave, `end` is behind the last of all.
struct CpuOps::Split {
  AttentionItem item;
  int32_t first, last, end;
  int tasks, left;  // of this wave; who does the last one merges them
  float *parts, *kept;
};

size_t CpuOps::attention_scratch(const Attend& a) const {
  const size_t state = kernels_.attend_state(a.how.value_dim) * (a.heads() / a.kv_heads()) * sizeof(float);
  const size_t splits = kSplitItems * threads();
  return threads() * attend_bytes(a) + aligned(splits * sizeof(Split)) +
         (splits * kAttendRows + kParts * threads()) * state;
}

size_t CpuOps::attend_bytes(const Attend& a) const {
  return aligned(kernels_.attend_scratch(a.heads() / a.kv_heads(), a.how.key_dim, a.how.value_dim));
}

void CpuOps::store_cache(const Attend& a) {
  const int kv_heads = a.kv_heads();
  const auto put = [&](const Tensor& pages, const Tensor& x, int64_t token, int32_t page, int32_t slot) {
    const int64_t dim = pages.cols();
    for (int h = 0; h < kv_heads; ++h) {
      const int64_t row = (int64_t{page} * kv_heads + h) * ops::kPagePositions + slot;
      kernels_.store_f16(static_cast<uint16_t*>(pages.data) + row * dim, x.f32() + token * x.cols() + h * dim,
                         dim);
    }
  };
  for (const ops::Run& run : a.kv.runs) {
    each(run.rows, a.k.cols() + a.v.cols(), [&](int64_t r) {
      const int32_t position = run.position + static_cast<int32_t>(r);
      const int32_t page = run.pages[position / ops::kPagePositions], slot = position % ops::kPagePositions;
      put(a.kv.layer.keys, a.k, run.first_row + r, page, slot);
      put(a.kv.layer.values, a.v, run.first_row + r, page, slot);
    });
  }
}

// Item `index` of all: some rows of one run, and the query heads that share one head of the cache.
AttentionItem CpuOps::attention_item(const Attend& a, int index) const {
  const ops::ScoreScale scale = ops::score_scale(a.how);
  const int kv_heads = a.kv_heads(), group = a.heads() / kv_heads, kv_head = index % kv_heads;
  const Block block = find_block(a.kv.runs, index / kv_heads);
  const int64_t row = block.run.first_row + block.first;
  return {.q = a.q.f32() + row * a.q.cols() + kv_head * group * a.how.key_dim,
          .y = a.y.f32() + row * a.y.cols() + kv_head * group * a.how.value_dim,
          .q_stride = a.q.cols(),
          .y_stride = a.y.cols(),
          .keys = static_cast<const uint16_t*>(a.kv.layer.keys.data),
          .values = static_cast<const uint16_t*>(a.kv.layer.values.data),
          .pages = block.run.pages.data(),
          .kv_head = kv_head,
          .kv_heads = kv_heads,
          .heads = group,
          .key_dim = a.how.key_dim,
          .value_dim = a.how.value_dim,
          .rows = block.rows,
          .position = block.run.position + block.first,
          .window = a.how.window,
          .capped = scale.capped,
          .before = scale.before,
          .after = scale.after};
}

// Where there are too few items for all threads, as for one long sequence, the chunks of an item are shared
// out. The largest items come first, so that none is left to one thread at the end.
void CpuOps::do_attention(const Attend& a, std::byte* scratch) {
  store_cache(a);
  int blocks = 0;
  int32_t longest = 0;
  for (const ops::Run& run : a.kv.runs) {
    blocks += blocks_of(run);
    longest = std::max(longest, run.position + run.rows);
  }
  const int items = blocks * a.kv_heads();
  if (threads() > 1 && items < kSplitItems * threads() && longest > ops::kPagePositions)
    return attend_split(a, items, scratch);
  const size_t own_bytes = attend_bytes(a);
  pool_->parallel_for(items, [&](int index, int thread) {
    kernels_.attend(attention_item(a, items - 1 - index), scratch + thread * own_bytes);
  });
}

// Wave after wave of parts, as many as there is room for; every item's are merged in the order of their
// chunks.
void CpuOps::attend_split(const Attend& a, int items, std::byte* scratch) {
  const int64_t state = kernels_.attend_state(a.how.value_dim) * (a.heads() / a.kv_heads());
  const size_t own_bytes = attend_bytes(a);
  auto* const splits = reinterpret_cast<Split*>(scratch + threads() * own_bytes);
  auto* kept = reinterpret_cast<float*>(scratch + threads() * own_bytes +
                                        aligned(kSplitItems * threads() * sizeof(Split)));
  int64_t rows = 0, chunks = 0;
  for (int i = 0; i < items; ++i) {
    Split& s = splits[i];
    s.item = attention_item(a, i);
    const int32_t position = s.item.position, window = s.item.window;
    s.last = window > 0 ? std::max(position - window + 1, 0) / ops::kPagePositions : 0;
    s.end = (position + s.item.rows - 1) / ops::kPagePositions + 1;
    s.kept = kept;
    kept += s.item.rows * state;
    rows += s.item.rows;
    chunks += s.end - s.last;
  }
  const auto wave = static_cast<int32_t>(kParts * threads() / rows);  // chunks of each item
  const auto grain = static_cast<int32_t>(std::clamp<int64_t>(chunks / (threads() * 8), 1, kMostChunks));
  for (int tasks = 1; tasks > 0;) {
    float* parts = kept;
    tasks = 0;
    for (Split* s = splits; s < splits + items; ++s) {
      s->first = s->last;
      s->last = std::min(s->first + wave, s->end);
      s->tasks = s->left = (s->last - s->first + grain - 1) / grain;
      s->parts = parts;
      parts += int64_t{s->last - s->first} * s->item.rows * state;
      tasks += s->tasks;
    }
    pool_->parallel_for(tasks, [&](int index, int thread) {
      Split* s = splits;
      for (; index >= s->tasks; ++s) index -= s->tasks;
      const int32_t begin = s->first + index * grain, end = std::min(begin + grain, s->last);
      for (int32_t c = begin; c < end; ++c)
        kernels_.attend_part(s->item, c, std::min(c + 1, end - 1),
                             s->parts + int64_t{c - s->first} * s->item.rows * state,
                             scratch + thread * own_bytes);
      if (std::atomic_ref(s->left).fetch_sub(1, std::memory_order_acq_rel) > 1) return;
      kernels_.attend_merge(s->item, s->first, s->last, s->parts, s->kept);
      if (s->last == s->end) kernels_.attend_end(s->item, s->kept);
    });
  }
}

}  // namespace juno::cpu
