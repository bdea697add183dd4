// SPDX-License-Identifier: Apache-2.0
// Tests that run once for each instruction set of the list. Those that this processor lacks are reported as
// skipped.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "backend/cpu/cpu_ops.h"
#include "ops/harness.h"
#include "ops/reference.h"

namespace juno::cpu::test {

class OnEveryIsa : public ::testing::TestWithParam<const Isa*> {
 protected:
  void SetUp() override {
    if (!GetParam()->supported()) GTEST_SKIP() << "this processor has no " << GetParam()->name;
  }
  std::unique_ptr<ops::Executor> open(ops::Activations activations = ops::Activations::kInt8,
                                      int threads = 2) {
    return take(open_cpu({threads, std::string(GetParam()->name), activations}));
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
