// SPDX-License-Identifier: Apache-2.0
// The floating-point mode of docs/numerics.md §1 for as long as the object lives: round to nearest even,
// denormals kept, no traps. A host program may run with others (FTZ from -ffast-math); it gets them back.
#pragma once
#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace juno {

class FpEnv {
 public:
  FpEnv() : saved_(get()) {
    if (saved_ != kOurs) set(kOurs);
  }
  ~FpEnv() {
    if (saved_ != kOurs) set(saved_);
  }
  FpEnv(const FpEnv&) = delete;
  FpEnv& operator=(const FpEnv&) = delete;

#if defined(__x86_64__)
  using Word = uint32_t;
  static constexpr Word kOurs = 0x1f80;                     // all exceptions masked, nothing else
  static Word get() { return _mm_getcsr() & ~Word{0x3f}; }  // without the sticky flags
  static void set(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = uint64_t;
  static constexpr Word kOurs = 0;
  static Word get() {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void set(Word word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
#error "base/fp_env.h: say how this processor's floating-point mode is read and set"
#endif

 private:
  Word saved_;
};

}  // namespace juno
