// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "backend/cpu/isa_test.h"

namespace juno::cpu {
namespace {

using ops::Ops;
using ops::test::Bits;
using ops::test::Memory;
using ops::test::Positions;
using ops::test::run;

class Rows : public test::OnEveryIsa {
 protected:
  void compare(int64_t tokens, const std::function<Tensor(Ops&)>& body, const std::string& what) {
    const Positions at(tokens, 4000);
    ops::Reference reference;
    const Bits want = run(reference, at.batch, body);
    const auto cpu = open();
    EXPECT_EQ(run(*cpu, at.batch, body), want) << what;
  }
};

TEST_P(Rows, AreNormalisedAsByTheReference) {
  Memory memory(41);
  for (const int64_t n : {1, 16, 100, 256, 257, 576, 4096}) {
    for (const bool centred : {false, true}) {
      const ops::Norm w{.weight = memory.f32(1, n),
                        .bias = centred ? memory.f32(1, n) : Tensor{},
                        .eps = 1e-5f,
                        .centred = centred};
      const Tensor x = memory.f32(3, n);
      compare(
          3, [&](Ops& op) { return op.norm(x, w); }, std::to_string(n));
    }
  }
  const ops::Norm heads{.weight = memory.f32(1, 64), .eps = 1e-6f};
  const Tensor x = memory.f32(20, 64 * 9);
  compare(
      20, [&](Ops& op) { return op.norm(x, heads); }, "heads");
}

TEST_P(Rows, TurnAsByTheReference) {
  Memory memory(42);
  for (const bool interleaved : {false, true}) {
    for (const int pairs : {1, 16, 24, 32}) {
      ops::Rope rope{.head_dim = 64, .interleaved = interleaved, .magnitude = pairs == 16 ? 1.25 : 1.0};
      for (int i = 0; i < pairs; ++i) rope.freq.push_back(1.0 / (1 + 3 * i));
      const Tensor x = memory.f32(40, 64 * 5);
      compare(
          40, [&](Ops& op) { return op.rope(x, rope); }, std::to_string(pairs));
    }
  }
}

TEST_P(Rows, GoThroughElementwiseVerbsAsByTheReference) {
  Memory memory(43);
  for (const int64_t tokens : {1, 30}) {
    for (const int64_t n : {7, 576, 1000}) {
      const Tensor a = memory.f32(tokens, n, -12, 12), b = memory.f32(tokens, n);
      for (const ops::Act act : {ops::Act::kSilu, ops::Act::kGeluTanh, ops::Act::kGeluErf})
        compare(
            tokens, [&](Ops& op) { return op.gated(act, a, b); }, "gated");
      compare(
          tokens, [&](Ops& op) { return op.add(a, b); }, "add");
      compare(
          tokens, [&](Ops& op) { return op.scale(a, 0.3f); }, "scale");
      compare(
          tokens, [&](Ops& op) { return op.softcap(a, 30.0f); }, "softcap");
    }
  }
}

TEST_P(Rows, AreGatheredEmbeddedAndRoutedAsByTheReference) {
  Memory memory(44);
  const Tensor x = memory.f32(9, 300), index = memory.i32({8, 0, 0, 3});
  compare(
      9, [&](Ops& op) { return op.rows(x, index); }, "rows");
  const Tensor tokens = memory.i32({3, 0, 3, 11, 5});
  for (const quant::FormatInfo& format : quant::formats()) {
    const Tensor table = memory.weight(format, {.rows = 12, .cols = 512});
    compare(
        5, [&](Ops& op) { return op.embed(table, tokens); }, format.name);
  }
  const Tensor logits = memory.f32(33, 60);
  for (const bool sigmoid : {false, true}) {
    const ops::Router how{.top_k = 6, .sigmoid = sigmoid, .normalise = !sigmoid};
    compare(
        33, [&](Ops& op) { return op.route(logits, how).weights; }, "route");
  }
}

TEST_P(Rows, RunTheInstructionSetThatWasAskedFor) {
  const auto cpu = open();
  EXPECT_EQ(cpu->isa(), GetParam()->name);
  EXPECT_EQ(cpu->isa(), GetParam()->kernels().name);
  EXPECT_EQ(cpu->backend(), "cpu");
}

INSTANTIATE_TEST_SUITE_P(Isa, Rows, test::every_isa(), test::isa_name);

TEST(Open, RefusesAnInstructionSetThatTheProcessorLacks) {
  const Isa* lacking = nullptr;
  for (const Isa& isa : isas())
    if (!isa.supported()) lacking = &isa;
  if (!lacking) GTEST_SKIP() << "this processor has all of them";
  const auto opened = open_cpu({.isa = std::string(lacking->name)});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kDevice);
  EXPECT_NE(opened.error().message.find("of which it has"), std::string::npos) << opened.error().message;
}

// The linker keeps one copy of a weak function: another object would then run this one's instructions.
TEST(IsaObjects, ShareNoFunctions) {
  if (std::string(JUNO_SANITIZE) != "") GTEST_SKIP() << "sanitizers add symbols of their own";
  FILE* nm = popen("nm -C " JUNO_ISA_OBJECTS " 2>&1", "r");
  ASSERT_NE(nm, nullptr);
  std::string shared, line;
  int kernels = 0;
  for (char text[4096]; std::fgets(text, sizeof text, nm);) {
    line = text;
    for (const char* kind : {" W ", " V ", " u ", " w "})
      if (line.find(kind) != std::string::npos) shared += line;
    kernels += line.find(" T juno::cpu::kernels_") != std::string::npos;
  }
  if (pclose(nm) != 0) GTEST_SKIP() << "nm is not installed: " << line;
  EXPECT_EQ(kernels, static_cast<int>(isas().size()));
  EXPECT_EQ(shared, "");
}

}  // namespace
}  // namespace juno::cpu
