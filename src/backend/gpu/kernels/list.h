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
  X(combine, CombineArgs, 256, 1)      \
  X(argmax, ArgmaxArgs, 1024, 1)       \
  X(finite, FiniteArgs, 256, 1)        \
  X(repack, RepackArgs, 256, 1)

// By the rows of activations that one pass over the weights serves; each its own .cu, for they take long to
// compile.
#define JUNO_MATVEC_1_KERNELS(X) X(matvec_1, MatvecArgs, 512, 1)
#define JUNO_MATVEC_2_KERNELS(X) X(matvec_2, MatvecArgs, 512, 1)
#define JUNO_MATVEC_4_KERNELS(X) X(matvec_4, MatvecArgs, 256, 1)
#define JUNO_MATVEC_8_KERNELS(X) X(matvec_8, MatvecArgs, 256, 1)
#define JUNO_MATVEC_KERNELS(X) \
  JUNO_MATVEC_1_KERNELS(X)     \
  JUNO_MATVEC_2_KERNELS(X)     \
  JUNO_MATVEC_4_KERNELS(X)     \
  JUNO_MATVEC_8_KERNELS(X)

#define JUNO_ATTENTION_KERNELS(X) \
  X(attend, AttendArgs, 256, 2)   \
  X(attend_merge, AttendArgs, 128, 1)

// Many tokens: products on tensor cores and attention of prompts. F(format, elements of K in a step): a
// format's own unit of docs/numerics.md §3 and, where that is larger, 32 for rows whose blocks are smaller.
#define JUNO_MANY_FORMATS(F)                                                                                \
  F(Q8_0, 32)                                                                                               \
  F(Q4_0, 32) F(Q4_1, 32) F(Q5_0, 32) F(Q5_1, 32) F(Q2_K, 128) F(Q2_K, 32) F(Q3_K, 128) F(Q3_K, 32)         \
      F(Q4_K, 128) F(Q4_K, 32) F(Q5_K, 64) F(Q5_K, 32) F(Q6_K, 32) F(IQ4_NL, 32) F(IQ4_XS, 32) F(MXFP4, 32) \
          F(TQ2_0, 128) F(TQ2_0, 32)
#define JUNO_MANY(X, format, unit)            \
  X(wide_##format##_##unit, ManyArgs, 256, 1) \
  X(narrow_##format##_##unit, ManyArgs, 512, 1)
#define JUNO_PROMPT_KERNELS(X)             \
  X(round_panels, RoundArgs, 256, 1)       \
  X(attend_prompt_64, PromptArgs, 128, 2)  \
  X(attend_prompt_128, PromptArgs, 128, 2) \
  X(attend_prompt_256, PromptArgs, 256, 1)
// In several units, so that they compile side by side.
#define JUNO_MANY_32_KERNELS(X) \
  JUNO_MANY(X, Q8_0, 32)        \
  JUNO_MANY(X, Q4_0, 32)        \
  JUNO_MANY(X, Q4_1, 32)        \
  JUNO_MANY(X, Q5_0, 32)        \
  JUNO_MANY(X, Q5_1, 32)        \
  JUNO_MANY(X, IQ4_NL, 32)      \
  JUNO_MANY(X, MXFP4, 32)
#define JUNO_MANY_LONG_KERNELS(X) \
  JUNO_MANY(X, Q2_K, 128)         \
  JUNO_MANY(X, Q3_K, 128)         \
  JUNO_MANY(X, Q4_K, 128)         \
  JUNO_MANY(X, Q5_K, 64)          \
  JUNO_MANY(X, Q6_K, 32)          \
  JUNO_MANY(X, IQ4_XS, 32)        \
  JUNO_MANY(X, TQ2_0, 128)
#define JUNO_MANY_SHORT_KERNELS(X) \
  JUNO_MANY(X, Q2_K, 32)           \
  JUNO_MANY(X, Q3_K, 32)           \
  JUNO_MANY(X, Q4_K, 32)           \
  JUNO_MANY(X, Q5_K, 32)           \
  JUNO_MANY(X, TQ2_0, 32)

#define JUNO_KERNELS(X)     \
  JUNO_ROW_KERNELS(X)       \
  JUNO_MATVEC_KERNELS(X)    \
  JUNO_ATTENTION_KERNELS(X) \
  JUNO_PROMPT_KERNELS(X)    \
  JUNO_MANY_32_KERNELS(X)   \
  JUNO_MANY_LONG_KERNELS(X) \
  JUNO_MANY_SHORT_KERNELS(X)

namespace juno::gpu {

// Indices into kernel_names().
enum class Kernel : int {
#define JUNO_NAME(name, args, threads, blocks) name,
  JUNO_KERNELS(JUNO_NAME)
#undef JUNO_NAME
};

}  // namespace juno::gpu
