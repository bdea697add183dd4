// SPDX-License-Identifier: Apache-2.0
// What each instruction set fills in: plain functions over plain pointers, so that an object compiled for one
// set shares no code with another. All of them compute the bits of docs/numerics.md.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/portable.h"

namespace juno::cpu {

inline constexpr int kLanes = 16;      // tokens side by side in a tile
inline constexpr int kItemRows = 64;   // weight rows unpacked at a time, at most
inline constexpr int kPieceRows = 16;  // rows that belong together: a piece of fewer does the work of so many
inline constexpr int kPairRows = 32;   // the same for many tokens, which meet two panels at a time
inline constexpr int kItemTokens = 256;  // rows of activations that meet unpacked weights at a time, at most
inline constexpr int kAttendRows = 16;   // query rows that share a converted chunk of the cache

// y = x · weightᵀ (+ bias). For integer weights x is packed first. From kManyTokens on, tokens lie side by
// side in tiles of kLanes; below, each row stays in one piece.
struct Product {
  static constexpr int kManyTokens = 8;
  bool panels = false;           // rows side by side: panel.h
  bool turned = false;           // by FormatKernels::turn
  const void* weight = nullptr;  // [outputs, k]
  int64_t row_bytes = 0, k = 0, outputs = 0;
  int block = 32;  // activations that share a scale
  int cell = 32;   // weights that share a sub-scale: what is packed holds sums of so many
  int times = 0;   // panels: the factor of these sums
  int widest = 1;  // panels: bytes of an integer, of weights and activations, for several rows of these
  int tokens = 0, planes = 1;  // planes: 2 under int8x2
  const float* x = nullptr;    // [tokens, k]
  std::byte* packed = nullptr;
  const float* bias = nullptr;  // [outputs], or null
  float* y = nullptr;           // [tokens, outputs]

  JUNO_BOTH bool many() const { return tokens >= kManyTokens; }
  JUNO_BOTH int width() const { return tokens * planes > 1 ? widest : 1; }
  // A shift: blocks are powers of two, and a division in a loop's end would cost more than its body.
  JUNO_BOTH int64_t blocks() const { return (k + block - 1) >> __builtin_ctz(block); }
  // Blocks of the largest of the eight groups.
  JUNO_BOTH int steps() const { return static_cast<int>((blocks() + 7) / 8); }
  JUNO_BOTH int pack_items() const { return many() && !panels ? (tokens + kLanes - 1) / kLanes : tokens; }
  // Of one item and plane: q, then a scale for each block, then the sums of each 16.
  JUNO_BOTH size_t packed_bytes() const {
    if (panels) return (blocks() * record_bytes(block, cell, width()) + 63) / 64 * 64;
    const size_t few = k * sizeof(int16_t) + blocks() * sizeof(float) + k / 16 * sizeof(int16_t);
    const size_t tile = (k + blocks() + k / 16) * kLanes * sizeof(float);
    return ((many() ? tile : few) + 63) / 64 * 64;
  }
  // Panels. Of a block of activations, in this order: its integers, their scale (f32), the sums of each cell
  // times `times` (i32), the sums again with the sign of `times` (i16).
  JUNO_BOTH static constexpr int record_bytes(int block, int cell, int width) {
    return (block * width + 4 + block / cell * 6 + 3) / 4 * 4;
  }
  // Elements of a row that lie unpacked together: a group, and what file blocks have around it.
  JUNO_BOTH int64_t chunk() const { return (int64_t{steps()} * block + 255) / 256 * 256 + 256; }
  JUNO_BOTH size_t panel_bytes(int rows) const {
    const int64_t n = chunk(), numbers = 2 * (n / block) + 2 * (n / cell);
    return rows * (n * width() + numbers * sizeof(float));
  }
  // Of a thread: unpacked rows, or the room to quantise one row of x.
  JUNO_BOTH size_t scratch_bytes() const {
    const size_t row = (k + 2 * blocks() + k / 16) * sizeof(float);
    const size_t quantised = k * (sizeof(float) + sizeof(int16_t)) + blocks() * sizeof(float);
    const int together = tokens * planes < kItemTokens ? tokens * planes + 1 : kItemTokens;
    const size_t waiting = size_t{kItemRows} * (together + 7) * 4 * sizeof(float);  // 7: tiles are whole
    const size_t folded = 2 * static_cast<size_t>(chunk()) * kPieceRows;
    if (panels) return (panel_bytes(kItemRows) + waiting + folded + quantised + 63) / 64 * 64;
    const size_t floats = (many() ? kItemRows : 0) * chunk() * sizeof(float) + waiting,
                 general = (many() ? kItemRows : 4) * row;
    const size_t rows = floats > general ? floats : general;
    return (rows + quantised + 63) / 64 * 64;
  }
};

struct FormatKernels {
  uint32_t gguf_id;
  bool panels;  // as of Product
  int cell, times, widest;
  // For weights of a multiple of `rows` rows: so many at a time, row_bytes each, as multiply() reads them
  // fastest, in as many bytes; and a block of one of them (`block`: where the panel's begins) as it was. Null
  // where the file's order is kept.
  int rows;
  void (*turn)(const uint8_t* from, int64_t row_bytes, uint8_t* to);
  void (*turn_back)(const uint8_t* block, int row, uint8_t* to);
  void (*multiply)(const Product& p, int64_t first, int64_t last,
                   std::byte* scratch);  // outputs [first, last)

  // A product with such weights, but for what and how much it multiplies.
  JUNO_BOTH Product product() const {
    Product p;
    p.panels = panels, p.cell = cell, p.times = times, p.widest = widest;
    return p;
  }
};

// Some rows of one run, the query heads that share one head of the cache. Pointers are to row 0 and the first
// head.
struct AttentionItem {
  const float* q;
  float* y;
  int64_t q_stride, y_stride;  // between rows
  const uint16_t *keys, *values;
  const int32_t* pages;
  int kv_head, kv_heads, heads;  // heads: query heads of this item
  int key_dim, value_dim;
  int rows;
  int32_t position;  // of row 0
  int32_t window;    // 0: none
  bool capped;
  float before, after;  // ops::ScoreScale
};

struct NormRun {
  const float *weight, *bias;  // [n]; bias may be null
  int64_t n;
  float eps;
  bool centred;
};

struct RopeHeads {
  int heads, head_dim, pairs;
  bool interleaved;
};

// The two limits of every product, alone (rates.h).
struct Probe {
  void (*read)(const std::byte* from, size_t bytes);  // aligned to 8, a multiple of 64
  int64_t (*multiply_add)(int64_t rounds);            // returns how many products were added
};

struct Kernels {
  const char* name;
  const FormatKernels* formats;
  int format_count;
  void (*pack)(const Product& p, int item, std::byte* scratch);
  size_t (*attend_scratch)(int heads, int key_dim, int value_dim);
  void (*attend)(const AttentionItem& item, std::byte* scratch);
  // The same in parts: chunk after chunk, in any order, then merged in theirs. A part and what is kept take
  // rows * heads states of attend_state floats each.
  int (*attend_state)(int value_dim);
  void (*attend_part)(const AttentionItem& item, int32_t chunk, int32_t next, float* part,
                      std::byte* scratch);
  void (*attend_merge)(const AttentionItem& item, int32_t first, int32_t last, float* parts, float* kept);
  void (*attend_end)(const AttentionItem& item, float* kept);
  void (*store_f16)(uint16_t* to, const float* from, int64_t n);
  void (*norm)(float* y, const float* x, int64_t runs, const NormRun& w);
  // x [heads, head_dim] of one token; turn [2*pairs].
  void (*rope)(float* y, const float* x, const float* turn, const RopeHeads& shape);
  void (*gated[3])(float* y, const float* gate, const float* up, int64_t n);  // by ops::Act
  void (*add)(float* y, const float* a, const float* b, int64_t n);
  void (*scale)(float* y, const float* x, float factor, int64_t n);
  void (*softcap)(float* y, const float* x, float cap, int64_t n);
  void (*add_scaled)(float* y, const float* x, float factor, int64_t n);  // y = fma(factor, x, y)
  bool (*finite)(const float* x, int64_t n);
  Probe probe;
};

}  // namespace juno::cpu
