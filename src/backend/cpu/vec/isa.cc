// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/vec/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace juno::cpu {

// Each is vec/kernels.cc, compiled by isa.cmake with other flags.
const Kernels& kernels_baseline();
#if defined(__x86_64__)
const Kernels& kernels_avx2();
const Kernels& kernels_avx512();
#endif

namespace {

#if defined(__x86_64__)
bool has_avx2() {
  unsigned a, b, c, d;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
  return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

constexpr Isa kIsas[] = {
#if defined(__x86_64__)
    {"avx512",
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vnni") && has_avx2();
     },
     kernels_avx512},
    {"avx2", has_avx2, kernels_avx2},
#endif
    {"baseline", [] { return true; }, kernels_baseline},
};

}  // namespace

std::span<const Isa> isas() { return kIsas; }

}  // namespace juno::cpu
