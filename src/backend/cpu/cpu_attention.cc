// SPDX-License-Identifier: Apache-2.0
// Attention on all threads: an item is some rows of one run and one head of the cache.
#include <algorithm>

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

size_t CpuOps::attention_scratch(const Attend& a) const {
  const size_t bytes = kernels_.attend_scratch(a.heads() / a.kv_heads(), a.how.key_dim, a.how.value_dim);
  return static_cast<size_t>(threads()) * ((bytes + Arena::kAlign - 1) / Arena::kAlign * Arena::kAlign);
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

void CpuOps::do_attention(const Attend& a, std::byte* scratch) {
  store_cache(a);
  const ops::ScoreScale scale = ops::score_scale(a.how);
  const int kv_heads = a.kv_heads(), group = a.heads() / kv_heads;
  const size_t own_bytes = attention_scratch(a) / threads();
  int blocks = 0;
  for (const ops::Run& run : a.kv.runs) blocks += blocks_of(run);

  pool_->parallel_for(blocks * kv_heads, [&](int index, int thread) {
    const Block block = find_block(a.kv.runs, index / kv_heads);
    const int kv_head = index % kv_heads;
    const int64_t row = block.run.first_row + block.first;
    AttentionItem item;
    item.q = a.q.f32() + row * a.q.cols() + kv_head * group * a.how.key_dim;
    item.y = a.y.f32() + row * a.y.cols() + kv_head * group * a.how.value_dim;
    item.q_stride = a.q.cols();
    item.y_stride = a.y.cols();
    item.keys = static_cast<const uint16_t*>(a.kv.layer.keys.data);
    item.values = static_cast<const uint16_t*>(a.kv.layer.values.data);
    item.pages = block.run.pages.data();
    item.kv_head = kv_head;
    item.kv_heads = kv_heads;
    item.heads = group;
    item.key_dim = a.how.key_dim;
    item.value_dim = a.how.value_dim;
    item.rows = block.rows;
    item.position = block.run.position + block.first;
    item.window = a.how.window;
    item.capped = scale.capped;
    item.before = scale.before;
    item.after = scale.after;
    kernels_.attend(item, scratch + thread * own_bytes);
  });
}

}  // namespace juno::cpu
