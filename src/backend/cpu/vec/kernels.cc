// SPDX-License-Identifier: Apache-2.0
// The kernels of one instruction set, JUNO_ISA; compiled once for each (isa.cmake). Everything here has
// internal linkage: a function that two objects could share would run one's instructions on the other's
// processor.
#include "backend/cpu/kernels.h"

#include "backend/cpu/vec/attention.h"
#include "backend/cpu/vec/linear.h"
#include "backend/cpu/vec/probe.h"
#include "backend/cpu/vec/rows.h"

#define JUNO_NAME_(isa) kernels_##isa
#define JUNO_NAME(isa) JUNO_NAME_(isa)
#define JUNO_TEXT_(isa) #isa
#define JUNO_TEXT(isa) JUNO_TEXT_(isa)

namespace juno::cpu {
namespace {

constexpr FormatTable kFormats = format_table(quant::Formats{});

constexpr Kernels kKernels = {
    .name = JUNO_TEXT(JUNO_ISA),
    .formats = kFormats.entries,
    .format_count = count_of(quant::Formats{}),
    .pack = pack,
    .attend_scratch = attend_scratch,
    .attend = attend,
    .attend_state = attend_state,
    .attend_part = attend_part,
    .attend_merge = attend_merge,
    .attend_end = attend_end,
    .store_f16 = store_f16,
    .norm = norm,
    .rope = rope,
    .gated = {gated_silu, gated_gelu_tanh, gated_gelu_erf},
    .add = add,
    .scale = scale,
    .softcap = softcap,
    .add_scaled = add_scaled,
    .finite = finite,
    .probe = {read_all, multiply_add},
};

}  // namespace

const Kernels& JUNO_NAME(JUNO_ISA)();
const Kernels& JUNO_NAME(JUNO_ISA)() { return kKernels; }

}  // namespace juno::cpu
