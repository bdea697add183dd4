// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/plan.h"

#include <algorithm>
#include <cassert>

#include "backend/gpu/kernels/list.h"

namespace juno::gpu {
namespace {

constexpr int kSumsBytes = 1024;      // of a norm: the first of a block's shared memory
constexpr int64_t kMaxBlocks = 1024;  // of kernels that go on with more elements where the grid ends

int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

uint32_t blocks_for(int64_t elements, int64_t threads) {
  return static_cast<uint32_t>(std::clamp<int64_t>(ceil_div(elements, threads), 1, kMaxBlocks));
}

template <class Args>
Launch launch(Kernel kernel, Extent grid, uint32_t threads, int64_t shared, const Args& a) {
  return make_launch(static_cast<int>(kernel), grid, threads, static_cast<uint32_t>(shared), a);
}

// One block a row, as wide as the row has work for.
uint32_t row_threads(int64_t elements_of_thread) {
  return static_cast<uint32_t>(std::clamp<int64_t>(ceil_div(elements_of_thread, 32) * 32, 32, 256));
}

}  // namespace

Launch plan(const EmbedArgs& a) {
  const int64_t cells = ceil_div(a.table.cols, 32) * a.count;
  return launch(Kernel::embed, {blocks_for(cells, 64)}, 64, 0, a);
}
Launch plan(const NormArgs& a) {
  const auto grid = static_cast<uint32_t>(std::min<int64_t>(a.runs, 8 * kMaxBlocks));
  return launch(Kernel::norm, {grid}, row_threads(a.n), kSumsBytes, a);
}
Launch plan(const QuantiseArgs& a) {
  return launch(Kernel::quantise, {static_cast<uint32_t>(a.tokens)}, 256, kSumsBytes, a);
}
Launch plan(const RopeTableArgs& a) {
  return launch(Kernel::rope_table, {blocks_for(int64_t{a.tokens} * a.pairs, 128)}, 128, 0, a);
}
Launch plan(const RopeArgs& a) {
  const int64_t elements = int64_t{a.tokens} * a.heads * (a.shape.head_dim - a.shape.pairs);
  return launch(Kernel::rope, {blocks_for(elements, 256)}, 256, 0, a);
}
Launch plan(const PrepareArgs& a) {
  const auto heads = static_cast<uint32_t>(a.heads + 2 * a.places.kv_heads);
  const int widest = std::max(a.places.key_dim, a.places.value_dim);
  return launch(Kernel::prepare, {heads, static_cast<uint32_t>(a.rows)}, row_threads(widest),
                kSumsBytes + a.places.key_dim * 4, a);
}
Launch plan(const ElementArgs& a) { return launch(Kernel::elementwise, {blocks_for(a.n, 256)}, 256, 0, a); }
Launch plan(const RowsArgs& a) {
  return launch(Kernel::rows, {blocks_for(int64_t{a.count} * a.width, 256)}, 256, 0, a);
}
Launch plan(const RouteArgs& a) {
  return launch(Kernel::route, {static_cast<uint32_t>(ceil_div(a.tokens, 4))}, 128,
                int64_t{4} * a.experts * 4, a);
}
Launch plan(const CombineArgs& a) {
  return launch(Kernel::combine, {blocks_for(int64_t{a.tokens} * a.width, 256)}, 256, 0, a);
}
Launch plan(const ArgmaxArgs& a) {
  return launch(Kernel::argmax, {static_cast<uint32_t>(a.rows)}, 1024, 32 * 8, a);
}
Launch plan(const FiniteArgs& a) { return launch(Kernel::finite, {blocks_for(a.n, 256)}, 256, 0, a); }
Launch plan(const RepackArgs& a) {
  const int64_t blocks = int64_t{a.count} * ceil_div(a.to.cols, 32);
  return launch(Kernel::repack, {blocks_for(blocks, 128)}, 128, 0, a);
}

// ---- products
// -----------------------------------------------------------------------------------------------
namespace {

int64_t strips(const MatvecArgs& a) {
  int64_t all = 0;
  for (int i = 0; i < (a.epilogue == Epilogue::kGated ? 1 : a.part_count); ++i)
    all += ceil_div(a.parts[i].weight.rows, 4);
  return all;
}

}  // namespace

int64_t matvec_shared(int rows, int k, int block) {
  if (block == 0) return kSumsBytes;
  const int64_t record = (block + block / 8 + 4 + 15) / 16 * 16;
  return kSumsBytes + rows * (k / block * record + 128);
}

int matvec_rows(int k, int block, const Chip& chip) {
  int rows = kMatvecRows;
  while (rows > 1 && matvec_shared(rows, k, block) > chip.shared_per_block) rows /= 2;
  return rows;
}

Launch plan(const MatvecArgs& a, const Chip& chip) {
  constexpr int kWarps = 8;
  const int rows = a.tokens * a.planes;
  assert(rows >= 1 && rows <= kMatvecRows);
  const int index = rows == 1 ? 0 : rows == 2 ? 1 : rows <= 4 ? 2 : 3, planned = 1 << index;
  const int64_t tasks = ceil_div(strips(a), kWarps);
  const int64_t pairs = a.ids ? a.pairs : 1, room = std::max<int64_t>(chip.multiprocessors * 2 / pairs, 1);
  const auto blocks = static_cast<uint32_t>(std::clamp<int64_t>(tasks, 1, room));
  return launch(static_cast<Kernel>(static_cast<int>(Kernel::matvec_1) + index),
                {blocks, static_cast<uint32_t>(pairs)}, kWarps * 32, matvec_shared(planned, a.k, a.block), a);
}

// ---- attention
// ----------------------------------------------------------------------------------------------
size_t attend_parts_bytes(const AttendArgs& a, const Chip& chip) {
  if (a.max_chunks <= 1 || int64_t{a.rows} * a.places.kv_heads >= 2 * chip.multiprocessors) return 0;
  return static_cast<size_t>(a.rows) * static_cast<size_t>(a.heads) * static_cast<size_t>(a.max_chunks) *
         static_cast<size_t>(a.places.value_dim + 2) * sizeof(float);
}

Launch plan_attend(const AttendArgs& a, const Chip& chip) {
  const int64_t others = int64_t{a.rows} * a.places.kv_heads;
  const int64_t chunks =
      a.parts ? std::clamp<int64_t>(ceil_div(4 * chip.multiprocessors, others), 1, a.max_chunks) : 1;
  const int64_t shared = (4 * 64 + 64) * 4 + 64 * int64_t{a.places.value_dim} * 2;
  return launch(Kernel::attend,
                {static_cast<uint32_t>(chunks), static_cast<uint32_t>(a.places.kv_heads),
                 static_cast<uint32_t>(a.rows)},
                256, shared, a);
}

Launch plan_attend_merge(const AttendArgs& a) {
  return launch(Kernel::attend_merge, {static_cast<uint32_t>(a.heads), static_cast<uint32_t>(a.rows)}, 128,
                int64_t{a.max_chunks} * 12, a);
}

}  // namespace juno::gpu
