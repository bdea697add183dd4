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

// By the rows of activations that one pass over the weights serves.
#define JUNO_MATVEC_KERNELS(X)    \
  X(matvec_1, MatvecArgs, 256, 2) \
  X(matvec_2, MatvecArgs, 256, 2) \
  X(matvec_4, MatvecArgs, 256, 1) \
  X(matvec_8, MatvecArgs, 256, 1)

#define JUNO_ATTENTION_KERNELS(X) \
  X(attend, AttendArgs, 256, 2)   \
  X(attend_merge, AttendArgs, 128, 1)

// Many tokens: products on tensor cores and attention of prompts.
#define JUNO_PROMPT_KERNELS(X)

#define JUNO_KERNELS(X)     \
  JUNO_ROW_KERNELS(X)       \
  JUNO_MATVEC_KERNELS(X)    \
  JUNO_ATTENTION_KERNELS(X) \
  JUNO_PROMPT_KERNELS(X)

namespace juno::gpu {

// Indices into kernel_names().
enum class Kernel : int {
#define JUNO_NAME(name, args, threads, blocks) name,
  JUNO_KERNELS(JUNO_NAME)
#undef JUNO_NAME
};

}  // namespace juno::gpu
