// SPDX-License-Identifier: Apache-2.0
// The floating-point mode of docs/numerics.md §1 for as long as the object lives: round to nearest even,
// denormals kept, no traps. A host program may run with others (FTZ from -ffast-math); it gets them back.
#pragma once
#include <cfenv>

namespace juno {

class FpEnv {
 public:
  FpEnv() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FpEnv() { std::fesetenv(&saved_); }
  FpEnv(const FpEnv&) = delete;
  FpEnv& operator=(const FpEnv&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace juno
