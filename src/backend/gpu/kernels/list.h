// SPDX-License-Identifier: Apache-2.0
// Every kernel: X(name, its one parameter, the most threads of a block, least blocks resident on a
// multiprocessor). The body is name(args) in the header of its family; one .cu a family.
#pragma once

#define JUNO_ROW_KERNELS(X)            \
  X(embed, EmbedArgs, 256, 1)          \
  X(norm, NormArgs, 256, 1)            \
  X(quantise, QuantiseArgs, 256, 1)    \
  X(rope_table, RopeTableArgs, 128, 1) \
  X(rope, RopeArgs, 256, 1)            \
  X(prepare, PrepareArgs, 256, 1)      \
  X(elementwise, ElementArgs, 256, 1)  \
  X(rows, RowsArgs, 256, 1)            \
  X(route, RouteArgs, 128, 1)          \
  X(group, GroupArgs, 256, 1)          \
  X(combine, CombineArgs, 256, 1)      \
  X(top, TopArgs, 256, 1)              \
  X(finite, FiniteArgs, 256, 1)        \
  X(repack, RepackArgs, 256, 1)

// Matrix-vector kernels, M(X, rows, threads, name, block, formats): one for a format or for formats that
// often stand side by side in a file; `block` is 128, or 0 for the activation blocks of other lengths of K;
// `rows` are those of the activations that one pass over the weights serves.
#define JUNO_MATVEC_32(M, X, rows, threads)     \
  M(X, rows, threads, F32, 0, quant::F32)       \
  M(X, rows, threads, F16, 0, quant::F16)       \
  M(X, rows, threads, BF16, 0, quant::BF16)     \
  M(X, rows, threads, Q8_0, 0, quant::Q8_0)     \
  M(X, rows, threads, Q4_0, 0, quant::Q4_0)     \
  M(X, rows, threads, Q4_1, 0, quant::Q4_1)     \
  M(X, rows, threads, Q5_0, 0, quant::Q5_0)     \
  M(X, rows, threads, Q5_1, 0, quant::Q5_1)     \
  M(X, rows, threads, IQ4_NL, 0, quant::IQ4_NL) \
  M(X, rows, threads, MXFP4, 0, quant::MXFP4)
#define JUNO_MATVEC_256(M, X, rows, threads)                    \
  M(X, rows, threads, Q2_K, 128, quant::Q2_K)                   \
  M(X, rows, threads, Q3_K, 128, quant::Q3_K)                   \
  M(X, rows, threads, Q4_K, 128, quant::Q4_K)                   \
  M(X, rows, threads, Q5_K, 128, quant::Q5_K)                   \
  M(X, rows, threads, Q6_K, 128, quant::Q6_K)                   \
  M(X, rows, threads, IQ4_XS, 128, quant::IQ4_XS)               \
  M(X, rows, threads, TQ2_0, 128, quant::TQ2_0)                 \
  M(X, rows, threads, Q4_K_Q6_K, 128, quant::Q4_K, quant::Q6_K) \
  M(X, rows, threads, Q5_K_Q6_K, 128, quant::Q5_K, quant::Q6_K) \
  M(X, rows, threads, Q2_K_short, 0, quant::Q2_K)               \
  M(X, rows, threads, Q3_K_short, 0, quant::Q3_K)               \
  M(X, rows, threads, Q4_K_short, 0, quant::Q4_K)               \
  M(X, rows, threads, Q5_K_short, 0, quant::Q5_K)               \
  M(X, rows, threads, Q6_K_short, 0, quant::Q6_K)               \
  M(X, rows, threads, IQ4_XS_short, 0, quant::IQ4_XS)           \
  M(X, rows, threads, TQ2_0_short, 0, quant::TQ2_0)
#define JUNO_MATVEC_NAME(X, rows, threads, name, block, ...) X(matvec_##name##_##rows, MatvecArgs, threads, 1)
// One .cu each, so that they compile side by side.
#define JUNO_MATVEC_32_1_KERNELS(X) JUNO_MATVEC_32(JUNO_MATVEC_NAME, X, 1, 576)
#define JUNO_MATVEC_32_2_KERNELS(X) JUNO_MATVEC_32(JUNO_MATVEC_NAME, X, 2, 512)
#define JUNO_MATVEC_32_4_KERNELS(X) JUNO_MATVEC_32(JUNO_MATVEC_NAME, X, 4, 512)
#define JUNO_MATVEC_32_8_KERNELS(X) JUNO_MATVEC_32(JUNO_MATVEC_NAME, X, 8, 512)
#define JUNO_MATVEC_256_1_KERNELS(X) JUNO_MATVEC_256(JUNO_MATVEC_NAME, X, 1, 576)
#define JUNO_MATVEC_256_2_KERNELS(X) JUNO_MATVEC_256(JUNO_MATVEC_NAME, X, 2, 512)
#define JUNO_MATVEC_256_4_KERNELS(X) JUNO_MATVEC_256(JUNO_MATVEC_NAME, X, 4, 512)
#define JUNO_MATVEC_256_8_KERNELS(X) JUNO_MATVEC_256(JUNO_MATVEC_NAME, X, 8, 512)
#define JUNO_MATVEC_KERNELS(X) \
  JUNO_MATVEC_32_1_KERNELS(X)  \
  JUNO_MATVEC_256_1_KERNELS(X) \
  JUNO_MATVEC_32_2_KERNELS(X)  \
  JUNO_MATVEC_256_2_KERNELS(X) \
  JUNO_MATVEC_32_4_KERNELS(X)  \
  JUNO_MATVEC_256_4_KERNELS(X) \
  JUNO_MATVEC_32_8_KERNELS(X)  \
  JUNO_MATVEC_256_8_KERNELS(X)

// Attention of rows that stand alone, M(X, the most elements of a head, query heads of a thread at a time).
#define JUNO_ATTENDS(M, X) \
  M(X, 64, 1)              \
  M(X, 64, 2) M(X, 64, 4) M(X, 128, 1) M(X, 128, 2) M(X, 128, 4) M(X, 256, 1) M(X, 256, 2) M(X, 256, 4)
#define JUNO_ATTEND_NAME(X, width, heads) X(attend_##width##_##heads, AttendArgs, 512, 1)
#define JUNO_ATTENTION_KERNELS(X)   \
  JUNO_ATTENDS(JUNO_ATTEND_NAME, X) \
  X(attend_merge, AttendArgs, 512, 1)

// Many tokens: products on tensor cores, M(X, format, elements of K in a step): a format's own unit of
// docs/numerics.md §3 and, where that is larger, 32 for rows whose blocks are smaller. In several units, so
// that they compile side by side.
#define JUNO_MANY_32(M, X) \
  M(X, Q8_0, 32) M(X, Q4_0, 32) M(X, Q4_1, 32) M(X, Q5_0, 32) M(X, Q5_1, 32) M(X, IQ4_NL, 32) M(X, MXFP4, 32)
#define JUNO_MANY_LONG(M, X) \
  M(X, Q2_K, 128)            \
  M(X, Q3_K, 128) M(X, Q4_K, 128) M(X, Q5_K, 64) M(X, Q6_K, 32) M(X, IQ4_XS, 32) M(X, TQ2_0, 128)
#define JUNO_MANY_SHORT(M, X) M(X, Q2_K, 32) M(X, Q3_K, 32) M(X, Q4_K, 32) M(X, Q5_K, 32) M(X, TQ2_0, 32)
// For the largest batches.
#define JUNO_BROAD(M, X) \
  M(X, Q2_K, 128) M(X, Q3_K, 128) M(X, Q4_K, 128) M(X, Q5_K, 64) M(X, Q6_K, 32) M(X, Q8_0, 32)

// F(format, step) of all of them.
#define JUNO_MANY_FORMAT(F, format, unit) F(format, unit)
#define JUNO_MANY_FORMATS(F)          \
  JUNO_MANY_32(JUNO_MANY_FORMAT, F)   \
  JUNO_MANY_LONG(JUNO_MANY_FORMAT, F) \
  JUNO_MANY_SHORT(JUNO_MANY_FORMAT, F)
#define JUNO_BROAD_FORMATS(F) JUNO_BROAD(JUNO_MANY_FORMAT, F)

#define JUNO_MANY_NAME(X, format, unit)       \
  X(wide_##format##_##unit, ManyArgs, 384, 1) \
  X(few_##format##_##unit, ManyArgs, 640, 1)
#define JUNO_BROAD_NAME(X, format, unit) X(broad_##format##_##unit, ManyArgs, 384, 1)
#define JUNO_MANY_32_KERNELS(X) JUNO_MANY_32(JUNO_MANY_NAME, X)
#define JUNO_MANY_LONG_KERNELS(X) JUNO_MANY_LONG(JUNO_MANY_NAME, X)
#define JUNO_MANY_SHORT_KERNELS(X) JUNO_MANY_SHORT(JUNO_MANY_NAME, X)
#define JUNO_MANY_BROAD_KERNELS(X) JUNO_BROAD(JUNO_BROAD_NAME, X)

#define JUNO_PROMPT_KERNELS(X)             \
  X(round_panels, RoundArgs, 256, 1)       \
  X(attend_prompt_64, PromptArgs, 256, 1)  \
  X(attend_prompt_128, PromptArgs, 256, 1) \
  X(attend_prompt_256, PromptArgs, 128, 1) \
  X(attend_capped_64, PromptArgs, 256, 1)  \
  X(attend_capped_128, PromptArgs, 256, 1) \
  X(attend_capped_256, PromptArgs, 128, 1)

#define JUNO_MANY_FLOAT_KERNELS(X) \
  X(many_F32, FloatArgs, 512, 1)   \
  X(many_F16, FloatArgs, 512, 1)   \
  X(many_BF16, FloatArgs, 512, 1)

#define JUNO_KERNELS(X)      \
  JUNO_ROW_KERNELS(X)        \
  JUNO_MATVEC_KERNELS(X)     \
  JUNO_ATTENTION_KERNELS(X)  \
  JUNO_PROMPT_KERNELS(X)     \
  JUNO_MANY_32_KERNELS(X)    \
  JUNO_MANY_LONG_KERNELS(X)  \
  JUNO_MANY_SHORT_KERNELS(X) \
  JUNO_MANY_BROAD_KERNELS(X) \
  JUNO_MANY_FLOAT_KERNELS(X)

namespace juno::gpu {

// Indices into kernel_names().
enum class Kernel : int {
#define JUNO_NAME(name, args, threads, blocks) name,
  JUNO_KERNELS(JUNO_NAME)
#undef JUNO_NAME
};

}  // namespace juno::gpu
