// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/plan.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/team_shapes.h"
#include "quant/format_info.h"
#include "quant/formats.h"

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
  return launch(Kernel::norm, {grid}, row_threads(a.n), kSumsBytes + int64_t{a.n} * 4, a);
}
// A norm takes a row whole, all else pieces of it that have room.
Launch plan(const QuantiseArgs& a, const Chip& chip) {
  constexpr int kFewTokens = 32, kPiece = 1024;  // with more, rows keep the device busy as they are
  constexpr int64_t kStep = 128;                 // that a piece is a multiple of
  const int64_t room = (int64_t{chip.shared_per_block} - kSumsBytes) / 4 / kStep * kStep;
  const int64_t pieces = std::max(a.tokens < kFewTokens ? ceil_div(a.k, kPiece) : 1, ceil_div(a.k, room));
  const int64_t staged = a.source == Source::kNorm ? a.k : ceil_div(a.k, pieces * kStep) * kStep;
  return launch(Kernel::quantise, {static_cast<uint32_t>(pieces), static_cast<uint32_t>(a.tokens)}, 256,
                kSumsBytes + staged * 4, a);
}
Launch plan(const RopeTableArgs& a) {
  return launch(Kernel::rope_table, {blocks_for(int64_t{a.tokens} * a.pairs, 128)}, 128, 0, a);
}
Launch plan(const RopeArgs& a) {
  const int64_t elements = int64_t{a.tokens} * a.heads * (a.shape.head_dim - a.shape.pairs);
  return launch(Kernel::rope, {blocks_for(elements, 256)}, 256, 0, a);
}
Launch plan(const PrepareArgs& a) {
  constexpr int kWarps = 4;
  const auto blocks = static_cast<uint32_t>(ceil_div(a.heads + 2 * a.places.kv_heads, kWarps));
  return launch(Kernel::prepare, {blocks, static_cast<uint32_t>(a.rows)}, kWarps * 32,
                int64_t{kWarps} * a.places.key_dim * 4, a);
}
Launch plan(const ElementArgs& a) { return launch(Kernel::elementwise, {blocks_for(a.n, 256)}, 256, 0, a); }
Launch plan(const RowsArgs& a) {
  return launch(Kernel::rows, {blocks_for(int64_t{a.count} * a.width, 256)}, 256, 0, a);
}
Launch plan(const RouteArgs& a) {
  return launch(Kernel::route, {static_cast<uint32_t>(ceil_div(a.tokens, 4))}, 128,
                int64_t{4} * a.experts * 4, a);
}
Launch plan(const GroupArgs& a) {
  return launch(Kernel::group, {}, 256, (int64_t{a.count} + kGroupPiece) * 4, a);
}
Launch plan(const CombineArgs& a) {
  return launch(Kernel::combine, {blocks_for(int64_t{a.tokens} * a.width, 256)}, 256, 0, a);
}
uint32_t top_pieces(int64_t columns) {
  constexpr int64_t kPiece = int64_t{kTopThreads} * (kTopHeld - 1), kMostPieces = 64;
  return static_cast<uint32_t>(std::clamp<int64_t>(ceil_div(columns, kPiece), 1, kMostPieces));
}
Launch plan(const TopArgs& a) {
  const int64_t shared = (kTopThreads + kTopHeld * kMostTop) * 8 + 32;  // TopRoom
  return launch(Kernel::top, {top_pieces(a.columns), static_cast<uint32_t>(a.rows)}, kTopThreads, shared, a);
}
Launch plan(const FiniteArgs& a) { return launch(Kernel::finite, {blocks_for(a.n, 256)}, 256, 0, a); }
Launch plan(const RepackArgs& a) {
  const int64_t blocks = int64_t{a.count} * ceil_div(a.to.cols, 32);
  return launch(Kernel::repack, {blocks_for(blocks, 128)}, 128, 0, a);
}

// Products.
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
  constexpr int kLeastWarps = 6;  // of a block, beside the activations
  int rows = kMatvecRows;
  const int64_t rings = block == 0 ? 0 : int64_t{kLeastWarps} * kRingBytes;
  while (rows > 1 && matvec_shared(rows, k, block) + rings > chip.shared_per_block) rows /= 2;
  return rows;
}

Passing passing(const MatvecPart* parts, int count) {
  const uint8_t *begin = parts[0].weight.data, *end = begin;
  for (int i = 0; i < count; ++i) {
    const Weight& w = parts[i].weight;
    begin = std::min(begin, w.data);
    end = std::max(end, w.data + w.plane_bytes);
  }
  return {begin, static_cast<uint64_t>(end - begin)};
}

namespace {

// A kernel for these formats, and how many of kernels/list.h stand before it among those for one row.
struct Served {
  int block;
  uint32_t formats[2];  // the second may be the first again
  bool has(uint32_t format) const { return format == formats[0] || format == formats[1]; }
};
template <class First, class Second = First>
constexpr Served served(int block) {
  return {block, {First::gguf_id, Second::gguf_id}};
}
constexpr Served kServed[] = {
#define JUNO_SERVED(X, rows, threads, name, block, ...) served<__VA_ARGS__>(block),
    JUNO_MATVEC_32(JUNO_SERVED, , , ) JUNO_MATVEC_256(JUNO_SERVED, , , )
#undef JUNO_SERVED
};

// The kernel that serves the parts [first, last), or -1.
int kernel_for(const MatvecArgs& a, int first, int last) {
  for (size_t k = 0; k < std::size(kServed); ++k) {
    const quant::FormatInfo& format = *quant::find_format(kServed[k].formats[0]);
    bool all = format.block_elements < 256 || kServed[k].block == (a.block == 128 ? 128 : 0);
    for (int i = first; i < last; ++i) all = all && kServed[k].has(a.parts[i].weight.format);
    if (all) return static_cast<int>(k);
  }
  return -1;
}

// The blocks of a product. Integer weights go to as many multiprocessors as there are strips for, to
// each once where that gives every warp one; long ones to large blocks, one a multiprocessor, because each
// block rounds the row for itself. Measured on an H200 (docs/performance.md).
struct BlockShape {
  int warps = 0;
  int64_t blocks = 1;
};
bool has_rings(const MatvecArgs& a) { return a.block != 0; }
BlockShape block_shape(const MatvecArgs& a, const Chip& chip, int64_t shared) {
  constexpr int kLong = 2048;
  const bool rings = has_rings(a), large = rings && a.k >= kLong && !a.ids;
  const int resident = large ? std::max(chip.product_blocks / 2, 1) : chip.product_blocks;
  BlockShape shape{.warps = large ? 2 * chip.product_warps : chip.product_warps};
  if (rings) {
    const int64_t room = (int64_t{chip.shared_per_block} - shared) / kRingBytes;
    shape.warps = static_cast<int>(std::clamp<int64_t>(room, 1, shape.warps));
  }
  const int64_t pairs = a.ids ? a.pairs : 1,
                room = std::max<int64_t>(chip.multiprocessors * resident / pairs, 1);
  const int64_t tasks = rings ? strips(a) : ceil_div(strips(a), shape.warps);
  const bool few = rings && tasks <= int64_t{chip.multiprocessors} * shape.warps;  // a strip a warp
  shape.blocks = std::clamp<int64_t>(tasks, 1, few ? std::min<int64_t>(room, chip.multiprocessors) : room);
  return shape;
}

// Of formats in blocks of 256, those whose activations have blocks of 128.
bool can_share_rings(const MatvecArgs& a) {
  return quant::find_format(a.parts[0].weight.format)->block_elements == 32 || a.block == 128;
}

// Strips that a warp asks for while the kernel before it still runs; integer weights have rings for that.
int32_t strips_asked(const MatvecArgs& a, const BlockShape& shape) {
  if (has_rings(a)) return 0;
  return static_cast<int32_t>(
      std::clamp<int64_t>(ceil_div(ceil_div(strips(a), shape.blocks), shape.warps), 1, 3));
}

bool is_staged(const MatvecArgs& a) { return a.block != 0 && !a.x.q && !a.rounds_while_reading(); }

Launch plan_part(const MatvecArgs& a, int kernel, const Chip& chip) {
  const int rows = a.tokens * a.planes;
  assert(rows >= 1 && rows <= kMatvecRows && kernel >= 0);
  const int index = rows == 1 ? 0 : rows == 2 ? 1 : rows <= 4 ? 2 : 3, planned = 1 << index;
  const int first = static_cast<int>(Kernel::matvec_F32_1);
  const int64_t shared = matvec_shared(planned, a.k, a.block) + (is_staged(a) ? int64_t{a.k} * 4 : 0);
  const BlockShape shape = block_shape(a, chip, shared);
  MatvecArgs some = a;
  some.prefetch_strips = strips_asked(a, shape);
  some.ring_times = can_share_rings(a) && strips(a) <= shape.blocks * (shape.warps / 2) ? 2 : 1;
  some.ring_at = static_cast<int32_t>(ceil_div(shared, 16) * 16);
  Launch product = launch(static_cast<Kernel>(first + index * static_cast<int>(std::size(kServed)) + kernel),
                          {static_cast<uint32_t>(shape.blocks), static_cast<uint32_t>(a.ids ? a.pairs : 1)},
                          static_cast<uint32_t>(shape.warps) * 32,
                          has_rings(a) ? some.ring_at + int64_t{shape.warps} * kRingBytes : shared, some);
  if (!a.ids) product.passing = passing(a.parts, a.part_count);
  return product;
}

}  // namespace

bool can_gate(const MatvecArgs& a) {
  return a.parts[0].weight.format == a.parts[1].weight.format && kernel_for(a, 0, 2) >= 0;
}

std::vector<Launch> plan(const MatvecArgs& a, const Chip& chip) {
  const int parts = a.part_count;
  if (const int kernel = kernel_for(a, 0, parts); kernel >= 0) return {plan_part(a, kernel, chip)};
  assert(a.epilogue != Epilogue::kGated);
  std::vector<Launch> launches;
  for (int first = 0, last = parts; first < parts; first = last) {
    for (last = parts; last > first && kernel_for(a, first, last) < 0;) --last;
    if (last == first) return {};
    MatvecArgs some = a;
    some.part_count = last - first;
    for (int i = first; i < last; ++i) some.parts[i - first] = a.parts[i];
    launches.push_back(plan_part(some, kernel_for(a, first, last), chip));
  }
  return launches;
}

// Attention.

namespace {

// The kernel for heads of `width` elements and `tile` query heads of a thread at a time.
Kernel attend_kernel(int width, int tile) {
#define JUNO_IS(X, most, heads) \
  if (width == most && tile == heads) return Kernel::attend_##most##_##heads;
  JUNO_ATTENDS(JUNO_IS, )
#undef JUNO_IS
  assert(false);
  return Kernel::attend_64_1;
}

}  // namespace

AttendPlan attend_plan(const AttendArgs& a, const Chip& chip) {
  constexpr int kFewChunks = 4;       // that one block does at once
  constexpr int kFewTeams = 4;        // of one head each, on a multiprocessor
  constexpr int kMostTiles = 2;       // of heads, that a team has at a time
  constexpr int64_t kMostBeside = 4;  // teams that registers of a multiprocessor are enough for
  constexpr int64_t kMostParts = int64_t{60} << 20;  // less than what placement leaves free
  const int64_t tasks = int64_t{a.rows} * a.places.kv_heads, room = chip.shared_per_block;
  const int group = a.heads / a.places.kv_heads;
  AttendPlan p;
  const bool apart = a.max_chunks * tasks * group <= kFewTeams * chip.multiprocessors;
  p.share = apart ? 1 : group;
  AttendArgs shared = a;
  shared.share = p.share;
  const bool few = a.max_chunks <= kFewChunks && AttendLayout(shared, a.max_chunks).bytes <= room;
  float somewhere = 0;
  shared.parts = &somewhere;
  // Teams that have room on the device at once.
  const int64_t at_once =
      chip.multiprocessors * std::clamp<int64_t>(room / AttendLayout(shared, 1).bytes, 1, kMostBeside);
  const bool many = 2 * tasks >= at_once;
  const int64_t parts = int64_t{a.rows} * a.heads * a.max_chunks * (a.places.value_dim + 2);
  if (!many && few) {
    p.teams = a.max_chunks;
  } else if (!many && parts <= kMostParts) {
    p.blocks = static_cast<int>(std::min<int64_t>(at_once / tasks, a.max_chunks));
    p.parts = static_cast<size_t>(parts);
  }
  p.tile = p.share <= 2 ? p.share : p.teams > 1 ? 4 : 2;  // measured on an H200
  p.team = kChunk * static_cast<int>(std::min<int64_t>(ceil_div(p.share, p.tile), kMostTiles));
  return p;
}

Launch plan_attend(AttendArgs a, const AttendPlan& p) {
  a.share = p.share;
  a.team = p.team;
  return launch(attend_kernel(attend_width(a.places), p.tile),
                {static_cast<uint32_t>(p.blocks), static_cast<uint32_t>(a.heads / p.share),
                 static_cast<uint32_t>(a.rows)},
                static_cast<uint32_t>(p.teams * p.team), AttendLayout(a, p.teams).bytes, a);
}

Launch plan_attend_merge(const AttendArgs& a) {
  const MergeShape shape(a);
  return launch(Kernel::attend_merge,
                {static_cast<uint32_t>(ceil_div(a.places.value_dim, shape.columns())),
                 static_cast<uint32_t>(a.heads), static_cast<uint32_t>(a.rows)},
                static_cast<uint32_t>(std::max(shape.span, 256)), shape.bytes, a);
}

}  // namespace juno::gpu
