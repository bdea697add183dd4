// SPDX-License-Identifier: Apache-2.0
// The kernels of prompts and of many tokens. Included by the kernels' units only.
#pragma once
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/many.h"
#include "backend/gpu/kernels/prompt_attention.h"

namespace juno::gpu {

#define JUNO_MANY_BODIES(format, unit)                      \
  JUNO_GPU void wide_##format##_##unit(const ManyArgs& a) { \
    multiply_many<quant::format, unit, WideShape>(a);       \
  }                                                         \
  JUNO_GPU void few_##format##_##unit(const ManyArgs& a) { multiply_many<quant::format, unit, FewShape>(a); }
JUNO_MANY_FORMATS(JUNO_MANY_BODIES)
#undef JUNO_MANY_BODIES
#define JUNO_BROAD_BODIES(format, unit)                      \
  JUNO_GPU void broad_##format##_##unit(const ManyArgs& a) { \
    multiply_many<quant::format, unit, BroadShape>(a);       \
  }
JUNO_BROAD_FORMATS(JUNO_BROAD_BODIES)
#undef JUNO_BROAD_BODIES

JUNO_GPU void attend_prompt_64(const PromptArgs& a) { attend_prompt<PromptShape<64>>(a); }
JUNO_GPU void attend_prompt_128(const PromptArgs& a) { attend_prompt<PromptShape<128>>(a); }
JUNO_GPU void attend_prompt_256(const PromptArgs& a) { attend_prompt<PromptShape<256>>(a); }
JUNO_GPU void attend_capped_64(const PromptArgs& a) { attend_prompt<PromptShape<64, true>>(a); }
JUNO_GPU void attend_capped_128(const PromptArgs& a) { attend_prompt<PromptShape<128, true>>(a); }
JUNO_GPU void attend_capped_256(const PromptArgs& a) { attend_prompt<PromptShape<256, true>>(a); }

}  // namespace juno::gpu
