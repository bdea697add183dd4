// SPDX-License-Identifier: Apache-2.0
// What kernels are given: plain structs of device pointers, passed by value. Numbers that change from token
// to token (ids, positions, pages) are read from device memory, so that a captured launch stays valid.
#pragma once
#include <cstdint>

#include "backend/gpu/kernels/words.h"

namespace juno::gpu {

// A weight in the layout of repack.h.
struct Weight {
  const uint8_t* data = nullptr;
  uint32_t format = 0;         // gguf_id of quant/formats.h
  int32_t rows = 0, cols = 0;  // outputs, inputs
  uint64_t plane_bytes = 0;    // from one expert's matrix to the next
};

// Activations for integer weights (docs/numerics.md §2). Under int8x2 token t has the rows 2t and 2t + 1.
// Every k is a multiple of its block.
struct Rounded {
  int8_t* q = nullptr;    // [rows, k]
  float* d = nullptr;     // [rows, k / block]
  uint32_t* h = nullptr;  // [rows, k / 32]: the sums of 16 and 16 elements as two int16, the first one low
};

enum class Source : int32_t { kPlain, kNorm, kGated };

// A function of ops::Act's numbers: 0 silu, 1 gelu by tanh, 2 gelu by erf.
struct NormWeights {
  const float* weight = nullptr;  // [n]
  const float* bias = nullptr;    // [n] or null
  float eps = 0;
  int32_t centred = 0;
};

// y [tokens, cols of the table]
struct EmbedArgs {
  Weight table;
  const int32_t* tokens = nullptr;  // [count]
  float* y = nullptr;
  int32_t count = 0;
};

// Each run of n elements alone: y [runs, n]. May work in place.
struct NormArgs {
  const float* x = nullptr;
  float* y = nullptr;
  NormWeights w;
  int32_t n = 0;
  int64_t runs = 0;
};

// Rounds x, norm(x) or act(x) ∘ up: [tokens, k].
struct QuantiseArgs {
  const float* x = nullptr;
  const float* up = nullptr;  // kGated
  NormWeights norm;           // kNorm: over whole rows
  Source source = Source::kPlain;
  int32_t act = 0;
  Rounded y;
  int32_t tokens = 0, k = 0, block = 32;
  int32_t planes = 1;  // 2 under int8x2
};

// table [tokens, 2 * pairs]: cosines, then sines.
struct RopeTableArgs {
  const double* freq = nullptr;  // [pairs]
  double magnitude = 1;
  const int32_t* positions = nullptr;  // [tokens]
  float* table = nullptr;
  int32_t tokens = 0, pairs = 0;
};

struct RopeShape {
  int32_t head_dim = 0, pairs = 0, interleaved = 0;
};

// x, y [tokens, heads * head_dim]; may work in place.
struct RopeArgs {
  const float* x = nullptr;
  float* y = nullptr;
  const float* table = nullptr;  // [tokens, 2 * pairs]
  RopeShape shape;
  int32_t tokens = 0, heads = 0;
};

// Where the keys and values of each row of the batch lie. A negative position marks a row that is not there.
struct Places {
  const int32_t* positions = nullptr;   // [rows]
  const int32_t* first_page = nullptr;  // [rows]: index into `pages` of the row's page 0
  const int32_t* pages = nullptr;
  uint16_t* keys = nullptr;    // [pages, kv_heads, 64, key_dim]
  uint16_t* values = nullptr;  // [pages, kv_heads, 64, value_dim]
  int32_t kv_heads = 0, key_dim = 0, value_dim = 0;
};

// Before attention: the norm of each head of q and k where there is one, rope where there is one, and k and v
// stored. q_out is not q; k is left as it is. Also good for the store alone (q null, heads 0, no rope).
struct PrepareArgs {
  const float *q = nullptr, *k = nullptr, *v = nullptr;  // [rows, heads * key_dim] …
  int64_t q_stride = 0, k_stride = 0, v_stride = 0;      // between rows
  float* q_out = nullptr;                                // [rows, heads * key_dim]
  NormWeights q_norm, k_norm;                            // weight null: none; n = key_dim
  const float* table = nullptr;                          // [rows, 2 * pairs], null: no rope
  RopeShape rope;
  Places places;
  int32_t rows = 0, heads = 0;
};

// Attention of rows that each stand alone (decoding). With `parts` null one block does all chunks of a row
// and a head of the cache, with one team or with one for each chunk; else chunks are shared out, and
// attend_merge adds them up.
struct AttendArgs {
  // q and what it goes through on the way. With k: each row is a sequence of its own, whose last key and
  // value are these; they are prepared here too, and stored.
  PrepareArgs prepare;
  float* y = nullptr;  // [rows, heads * value_dim]
  Places places;
  float* parts = nullptr;  // o [rows, heads, max_chunks, value_dim], then l and n [rows, heads, max_chunks]
  int32_t rows = 0, heads = 0, max_chunks = 0;
  int32_t window = 0;  // 0: none
  int32_t capped = 0;
  float before = 0, after = 0;  // ops::ScoreScale
  int32_t skip_runs = 0;        // leave rows alone that attend_prompt serves
  // Set by plan_attend: query heads of a block, threads that have a chunk together.
  int32_t share = 1, team = 64;
};

enum class Elementwise : int32_t { kAdd, kScale, kSoftcap, kGated, kCopy };

// y[i] of n elements.
struct ElementArgs {
  Elementwise what = Elementwise::kCopy;
  const float *a = nullptr, *b = nullptr;  // kGated: gate, up
  float* y = nullptr;
  float factor = 0;
  int32_t act = 0;
  int64_t n = 0;
};

// y[i] = x[index[i]], rows of `width`.
struct RowsArgs {
  const float* x = nullptr;
  const int32_t* index = nullptr;
  float* y = nullptr;
  int32_t count = 0, width = 0;
};

struct RouteArgs {
  const float* logits = nullptr;  // [tokens, experts]
  int32_t* ids = nullptr;         // [tokens, top_k], in order of choice
  float* weights = nullptr;
  int32_t tokens = 0, experts = 0, top_k = 0, sigmoid = 0, normalise = 0;
};

// Pairs of a token and its expert, sorted into groups of up to `size` that share an expert. Slot s is of
// group s / size.
struct GroupArgs {
  const int32_t* ids = nullptr;             // [pairs]
  int32_t* experts = nullptr;               // [groups], -1: the group has no pair
  int32_t* tokens = nullptr;                // [groups * size], 0 where there is no pair
  int32_t* slots = nullptr;                 // [pairs]
  int32_t pairs = 0, top_k = 0, count = 0;  // count: of experts
  int32_t groups = 0, size = 0;
};
inline constexpr int kGroupPiece = 2048;  // pairs that wait in shared memory

// y[t] = the outputs of token t's experts, combined in increasing id.
struct CombineArgs {
  const float* outputs = nullptr;  // [tokens * top_k, width], in order of choice
  const int32_t* ids = nullptr;
  const float* weights = nullptr;
  float* y = nullptr;  // [tokens, width]
  int32_t tokens = 0, top_k = 0, width = 0;
  const int32_t* slots = nullptr;  // the row of each pair's output, where it is another one
};

// The greatest logits of each row, the greatest first, among equals the lowest id. Where there are fewer
// their ids are -1; so is the first id of a row that has a value which is not finite.
inline constexpr int kMostTop = 128;     // of a row; at most half the threads
inline constexpr int kTopThreads = 256;  // of a block
inline constexpr int kTopHeld =
    17;  // keys that a thread holds: of the greatest so far one, of new ones the rest
struct TopArgs {
  const float* logits = nullptr;   // [rows, columns]
  const int32_t* first = nullptr;  // [rows + 1]: those of row r are top[first[r]] up to top[first[r + 1]]
  uint32_t* arrived = nullptr;     // [rows], 0 before and after
  uint64_t* parts = nullptr;       // [rows, pieces of a row, kMostTop]
  Pair32* top = nullptr;           // a logit's bits, its id
  int32_t rows = 0, columns = 0;
  int32_t n = 0;  // the first n of each row take part
};

// Sets `flag` to 1 where some of n values are not finite.
struct FiniteArgs {
  const float* x = nullptr;
  uint32_t* flag = nullptr;
  int64_t n = 0;
};

// From a file's bytes, rows [first, first + count) of one matrix, to the layout of repack.h.
struct RepackArgs {
  const uint8_t* from = nullptr;  // row `first`
  Weight to;                      // data is written
  int32_t first = 0, count = 0;
};

// Products of few tokens: y = x · weightᵀ, and what follows. Up to three weights of the same input in one
// launch, each of any format.
struct MatvecPart {
  Weight weight;
  const float* bias = nullptr;
  float* y = nullptr;  // [tokens, y_stride]
  int64_t y_stride = 0;
};

enum class Epilogue : int32_t {
  kStore,  // y = product + bias
  kAdd,    // y = residual + (product + bias)
  kGated,  // parts 0 and 1 are gate and up: y of part 0 = act(gate) ∘ up
};

inline constexpr int kRingBytes = 11520;  // of a warp, for weights on their way

struct MatvecArgs {
  MatvecPart parts[3];
  int32_t part_count = 1;
  Epilogue epilogue = Epilogue::kStore;
  const float* residual = nullptr;  // [tokens, y_stride of part 0]; may be y
  int32_t act = 0;
  int32_t tokens = 0, planes = 1;
  int32_t k = 0, block = 32;  // block: of the activations, as §2 says for the weights' formats

  // Set by plan(): strips of float weights that each warp asks for early, at most 8, under kGated 4; for
  // integer weights where the rings begin in shared memory, and 2 where only the first half of a block's
  // warps has strips.
  int32_t prefetch_strips = 0, ring_at = 0, ring_times = 1;

  // One row that each block rounds while it reads it; others take shared memory on the way.
  constexpr bool rounds_while_reading() const {
    const bool simple =
        source == Source::kPlain || (source == Source::kNorm && norm.centred == 0 && !norm.bias);
    return !x.q && tokens * planes == 1 && simple;
  }

  // The activations: rounded already (x.q set), or f32 that each block rounds for itself (from set), or, for
  // float weights, f32 (from set).
  Rounded x;
  const float* from = nullptr;  // [tokens, k]
  const float* up = nullptr;
  NormWeights norm;
  Source source = Source::kPlain;
  int32_t from_act = 0;

  // A mixture: grid row p multiplies with expert ids[p], unless that is negative; its inputs are `tokens`
  // rows from p * tokens / inputs_shared on.
  const int32_t* ids = nullptr;
  int32_t pairs = 0, inputs_shared = 1;
};

// Activations of many tokens for tensor cores: rows as in Rounded, then rows of zeros; k in slabs of 64 and
// stages of 128.
struct Panels {
  uint16_t* q = nullptr;  // [slabs, rows, 64], halves, in the order of panels.h and prompt_shapes.h
  uint16_t* h = nullptr;  // [stages, rows, 8], halves: sums of 16
  float* d = nullptr;     // [128 stages / block, rows]
  int32_t rows = 0;
};

// Rounds what `from` says, for each unit that is wanted: 32, 64 and 128 elements.
struct RoundArgs {
  QuantiseArgs from;    // without y
  uint16_t* q[3] = {};  // Panels::q of each, or null
  Panels y;             // the rest
};

// Products of many tokens: y = x · weightᵀ + bias, y = residual + that. Up to three weights of the same input
// and format.
struct ManyArgs {
  MatvecPart parts[3];
  int32_t part_count = 1;
  Panels x;
  int32_t rows = 0, planes = 1;  // of activations: tokens * planes
  int32_t k = 0, block = 32;
  const float* residual = nullptr;  // [tokens, y_stride of part 0] or null; may be y. With one part only
  // The first `whole` tiles are one block's each. Of the others the eight groups of K are shared out among so
  // many blocks; the last one to come adds them up.
  int32_t whole = 0, splits = 1;
  float* partial = nullptr;     // [shared tiles, splits, sums of a tile]
  float* parked = nullptr;      // [blocks, ManyShape::kParked bytes]
  uint32_t* arrived = nullptr;  // [shared tiles], 0 before and after
};

// Products of many tokens with float weights: y = x · weightᵀ + bias, y = residual + that. Up to three
// weights of the same input and format.
struct FloatArgs {
  MatvecPart parts[3];
  int32_t part_count = 1;
  const float* x = nullptr;  // [tokens, k]
  int32_t tokens = 0, k = 0;
  const float* residual = nullptr;  // [tokens, y_stride of part 0] or null; may be y. With one part only
};

// Attention of rows that stand in runs: neighbours in the batch and in their sequence. Others are left alone.
struct PromptArgs {
  const float* q = nullptr;  // [rows, heads * key_dim], dense
  float* y = nullptr;        // [rows, heads * value_dim]
  Places places;
  int32_t rows = 0, heads = 0;
  int32_t window = 0;  // 0: none
  int32_t capped = 0;
  float before = 0, after = 0;  // ops::ScoreScale
};

}  // namespace juno::gpu
