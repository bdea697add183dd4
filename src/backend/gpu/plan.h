// SPDX-License-Identifier: Apache-2.0
// From a kernel's filled-in parameter to its launch: which kernel, how many blocks, how much shared memory.
#pragma once
#include <vector>

#include "backend/gpu/kernels/args.h"
#include "backend/gpu/launch.h"

namespace juno::gpu {

Launch plan(const EmbedArgs& a);
Launch plan(const NormArgs& a);
Launch plan(const QuantiseArgs& a, const Chip& chip);
Launch plan(const RopeTableArgs& a);
Launch plan(const RopeArgs& a);
Launch plan(const PrepareArgs& a);
Launch plan(const ElementArgs& a);
Launch plan(const RowsArgs& a);
Launch plan(const RouteArgs& a);
Launch plan(const GroupArgs& a);
Launch plan(const CombineArgs& a);
Launch plan(const TopArgs& a);
uint32_t top_pieces(int64_t columns);  // of a row of so many, a block each
Launch plan(const FiniteArgs& a);
Launch plan(const RepackArgs& a);

// The weights of parts that a launch reads once, with what lies between them.
Passing passing(const MatvecPart* parts, int count);

// Products of few tokens: at most matvec_rows rows of activations (tokens * planes); larger batches go in
// several calls or to the tensor cores. block is 0 for float weights.
inline constexpr int kMatvecRows = 8;
int matvec_rows(int k, int block, const Chip& chip);
int64_t matvec_shared(int rows, int k, int block);  // bytes of a block of threads
// One, where one kernel serves all parts; none where a format has no kernel.
std::vector<Launch> plan(const MatvecArgs& a, const Chip& chip);
bool can_gate(const MatvecArgs& a);  // Epilogue::kGated: one kernel serves the formats of parts 0 and 1

// Attention of decoding rows: how many blocks share the chunks of a row, how many teams a block has,
// AttendArgs::share and team, and `tile`, the query heads of a thread at a time, which with the heads' width
// chooses the kernel. With `parts` the launch needs AttendArgs::parts, so many floats, and
// attend_merge after it; else there is one block, with one team or as many as chunks.
struct AttendPlan {
  int blocks = 1, teams = 1, share = 1, team = 64, tile = 1;
  size_t parts = 0;
};
AttendPlan attend_plan(const AttendArgs& a, const Chip& chip);
Launch plan_attend(AttendArgs a, const AttendPlan& how);
Launch plan_attend_merge(const AttendArgs& a);  // only with parts

}  // namespace juno::gpu
