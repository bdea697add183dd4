// SPDX-License-Identifier: Apache-2.0
// Tests that run once for each instruction set of the list. Those that this processor lacks are reported as
// skipped, or fail where JUNO_NEEDS_ISA names them.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backend/cpu/cpu_ops.h"
#include "ops/harness.h"
#include "ops/reference.h"

namespace juno::cpu::test {

// Where there is no ctest to list what was skipped, a test of this instruction set may not be.
inline bool needed(const Isa& isa) {
  const char* name = std::getenv("JUNO_NEEDS_ISA");
  return name && isa.name == name;
}

class OnEveryIsa : public ::testing::TestWithParam<const Isa*> {
 protected:
  void SetUp() override {
    if (GetParam()->supported()) return;
    ASSERT_FALSE(needed(*GetParam())) << "this processor has no " << GetParam()->name;
    GTEST_SKIP() << "this processor has no " << GetParam()->name;
  }
  std::unique_ptr<ops::Executor> open(ops::Activations activations = ops::Activations::kInt8,
                                      int threads = 2) {
    // A pool of its own, so that as many threads work on a machine that has fewer processors.
    return take(open_cpu(
        {threads, std::string(GetParam()->name), activations, std::make_shared<ThreadPool>(threads)}));
  }
};

inline auto every_isa() {
  std::vector<const Isa*> list;
  for (const Isa& isa : isas()) list.push_back(&isa);
  return ::testing::ValuesIn(list);
}

inline std::string isa_name(const ::testing::TestParamInfo<const Isa*>& info) {
  return std::string(info.param->name);
}

}  // namespace juno::cpu::test
