// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/vec/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace juno::cpu {

// Each is vec/kernels.cc, compiled with other flags by isa.cmake, which has the list.
#define ISA(name) const Kernels& kernels_##name();
JUNO_ISA_LIST
#undef ISA

namespace {

// A build may have fewer of them.
#pragma GCC diagnostic ignored "-Wunused-function"
#if defined(__x86_64__)
bool has_avx2() {
  unsigned a, b, c, d;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
  return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avxvnni() {
  unsigned a, b, c, d;
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni") && has_avx2();
}
// Tiles take eight kilobytes a thread, so Linux wants to be asked before a process may use them.
bool has_amx() {
  unsigned a, b, c, d;
  constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25, kState = 3u << 17;
  if (!has_avx512() || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & kTile) || !(d & kInt8)) return false;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  constexpr long kAsk = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return (a & kState) == kState && syscall(SYS_arch_prctl, kAsk, kTileData) == 0;
}
#elif defined(__aarch64__)
bool has_neon() { return getauxval(AT_HWCAP) & HWCAP_ASIMDDP; }
bool has_i8mm() { return has_neon() && getauxval(AT_HWCAP2) & HWCAP2_I8MM; }
#endif

bool has_baseline() { return true; }

#define ISA(name) {#name, has_##name, kernels_##name},
constexpr Isa kIsas[] = {JUNO_ISA_LIST};
#undef ISA

}  // namespace

std::span<const Isa> isas() { return kIsas; }

}  // namespace juno::cpu
