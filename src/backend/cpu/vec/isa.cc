// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/vec/isa.h"

namespace juno::cpu {

// Each is vec/kernels.cc, compiled by isa.cmake with other flags.
const Kernels& kernels_baseline();
#if defined(__x86_64__)
const Kernels& kernels_avx2();
const Kernels& kernels_avx512();
#endif

namespace {

constexpr Isa kIsas[] = {
#if defined(__x86_64__)
    {"avx512",
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma");
     },
     kernels_avx512},
    {"avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }, kernels_avx2},
#endif
    {"baseline", [] { return true; }, kernels_baseline},
};

}  // namespace

std::span<const Isa> isas() { return kIsas; }

}  // namespace juno::cpu
