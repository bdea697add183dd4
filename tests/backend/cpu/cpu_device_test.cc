// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_device.h"

#include "backend/cpu/isa_test.h"

namespace juno::cpu {
namespace {

using ops::Ops;
using ops::test::Bits;
using ops::test::Memory;
using ops::test::Positions;
using ops::test::run;

class Later : public test::OnEveryIsa {};

// What a model's file gives up is overwritten here, so that whoever still reads it is found out.
TEST_P(Later, TheFirstPassReadsTheFileAndThoseBehindItTurnedWeights) {
  for (const quant::FormatInfo& format : quant::formats()) {
    SCOPED_TRACE(format.name);
    Memory memory(31);
    const Tensor two = memory.weight(format, {.planes = 2, .rows = 48, .cols = 512}), x = memory.f32(3, 512);
    const Tensor rows = memory.i32({0, 47, 17});
    const std::function<Tensor(Ops&)> verbs[] = {
        [&](Ops& op) { return op.linear(x, {.weight = ops::plane(two, 0)}); },
        [&](Ops& op) { return op.linear(x, {.weight = ops::plane(two, 1)}); },
        [&](Ops& op) { return op.embed(ops::plane(two, 1), rows); }};
    const Positions at(3);
    ops::Reference reference;
    std::vector<Bits> want;
    for (const auto& verb : verbs) want.push_back(run(reference, at.batch, verb));

    const auto cpu = open();
    uint64_t given_up = 0;
    cpu->device().copies_later([&](const uint8_t* data, uint64_t bytes) {
      EXPECT_EQ(data, two.data);
      std::memset(two.data, 0x55, bytes);
      given_up = bytes;
    });
    EXPECT_EQ(take(cpu->device().upload(two)).data, two.data);
    const bool turns = static_cast<CpuDevice&>(cpu->device()).kernels_of(two).turn != nullptr;
    EXPECT_EQ(cpu->device().held() > 0, turns);
    for (int i = 0; i < 3; ++i) {
      const auto forward = [&](const ops::Batch& b) {
        cpu->begin(b);
        return verbs[i](*cpu);
      };
      take(cpu->plan(at.batch, forward));
      EXPECT_EQ(ops::test::bits_of(cpu->run(at.batch, [&] { return forward(at.batch); })), want[i]) << i;
      EXPECT_EQ(given_up, turns && i > 0 ? ops::weight_bytes(two) : 0) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Later, test::every_isa(), test::isa_name);

}  // namespace
}  // namespace juno::cpu
