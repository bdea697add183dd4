// SPDX-License-Identifier: Apache-2.0
// Every weight format Juno knows. Adding one: its header, and its name here.
#pragma once
#include "quant/bf16.h"
#include "quant/f16.h"
#include "quant/f32.h"
#include "quant/format.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/mxfp4.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"
#include "quant/tq2_0.h"

namespace juno::quant {

using Formats = List<F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL,
                     IQ4_XS, MXFP4, TQ2_0>;

static_assert([]<class... Fs>(List<Fs...>) { return (well_formed<Fs>() && ...); }(Formats{}));

}  // namespace juno::quant
