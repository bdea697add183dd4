// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/isa_test.h"

namespace juno::cpu {
namespace {

using ops::Activations;
using ops::Linear;
using ops::Ops;
using ops::test::Bits;
using ops::test::Memory;
using ops::test::Positions;
using ops::test::run;

constexpr int64_t kLengths[] = {32,  64,  96,   160,  224,  256,  512,  576,   640,
                                768, 896, 1024, 1536, 2048, 3072, 3584, 14336, 18944};
constexpr Activations kProfiles[] = {Activations::kInt8, Activations::kInt8x2};

class Products : public test::OnEveryIsa {};

// Both backends on the same product.
void compare(ops::Executor& cpu, ops::Executor& reference, const Tensor& x, const Linear& w,
             const char* format) {
  const Positions at(x.rows());
  const auto body = [&](Ops& op) { return op.linear(x, w); };
  const Bits want = run(reference, at.batch, body);
  EXPECT_EQ(run(cpu, at.batch, body), want)
      << format << " k " << x.cols() << " outputs " << w.weight.rows() << " tokens " << x.rows();
}

TEST_P(Products, EqualTheReferenceForEveryFormatAndShape) {
  Memory memory(21);
  for (const Activations profile : kProfiles) {
    const auto cpu = open(profile);
    ops::Reference reference(profile);
    for (const quant::FormatInfo& format : quant::formats()) {
      int turn = 0;
      for (const int64_t k : kLengths) {
        if (k % format.block_elements != 0) continue;
        const bool large = k > 4096;
        for (const int64_t tokens : {1, 2, 3, 5, 17}) {
          if (large && tokens != 3 && tokens != 17) continue;
          const int64_t outputs[] = {1, 33, 8, 15, 2};
          const int64_t n = large ? 2 : outputs[turn++ % 5];
          const Linear w{.weight = memory.weight(format, {.rows = n, .cols = k}),
                         .bias = tokens % 2 == 0 ? memory.f32(1, n) : Tensor{}};
          compare(*cpu, reference, memory.f32(tokens, k), w, format.name);
        }
      }
    }
  }
}

// Each byte of a block the same: all integers and sub-scales at an end of their range at once. Activations at
// theirs.
TEST_P(Products, EqualTheReferenceAtTheLargestSums) {
  Memory memory(22);
  for (const Activations profile : kProfiles) {
    const auto cpu = open(profile);
    ops::Reference reference(profile);
    for (const quant::FormatInfo& format : quant::formats()) {
      if (format.is_float) continue;
      for (const int byte : {0x00, 0x0f, 0x3f, 0x7b, 0x80, 0xbb, 0xf3}) {
        for (const int64_t tokens : {2, 9}) {
          const Tensor weight = memory.weight(format, {.rows = 9, .cols = 1024});
          std::memset(weight.data, byte, ops::weight_bytes(weight));
          Tensor x = memory.f32(tokens, 1024);
          for (int64_t i = 0; i < x.shape.size(); ++i)
            x.f32()[i] = i % 7 == 3 && i % 2048 > 1024 ? -2.0f : 2.0f;
          compare(*cpu, reference, x, {.weight = weight}, format.name);
        }
      }
    }
  }
}

// One to thirty-three rows and one to thirty-four tokens: the edges of pairs of rows, blocks of rows and
// tiles.
TEST_P(Products, EqualTheReferenceForEveryNumberOfRowsAndTokens) {
  Memory memory(27);
  for (const Activations profile : kProfiles) {
    const auto cpu = open(profile);
    ops::Reference reference(profile);
    for (const quant::FormatInfo& format : quant::formats()) {
      const int64_t k = format.block_elements == 256 ? 256 : 96;
      for (int64_t n = 1; n <= 33; ++n) {
        const Linear w{.weight = memory.weight(format, {.rows = n, .cols = k}), .bias = memory.f32(1, n)};
        compare(*cpu, reference, memory.f32(1 + n % 8, k), w, format.name);
        compare(*cpu, reference, memory.f32(n + 1, k), w, format.name);
      }
    }
  }
}

// Unpacked weights meet kItemTokens rows of activations at a time: in the end a single one, or two.
TEST_P(Products, EqualTheReferenceForMoreTokensThanMeetUnpackedWeights) {
  Memory memory(29);
  for (const Activations profile : kProfiles) {
    const auto cpu = open(profile);
    ops::Reference reference(profile);
    for (const quant::FormatInfo& format : quant::formats()) {
      const int64_t k = format.block_elements == 256 ? 256 : 96;
      const Linear w{.weight = memory.weight(format, {.rows = 17, .cols = k})};
      compare(*cpu, reference, memory.f32(kItemTokens + 1, k), w, format.name);
    }
  }
}

// One thread takes 64 rows at a time, and in the end 41: four panels of sixteen, two and one. Lengths end
// inside a block and inside a step of sixteen.
TEST_P(Products, OfFloatsEqualTheReferenceForEveryNumberOfPanels) {
  Memory memory(30);
  const auto cpu = open(Activations::kInt8, 1);
  ops::Reference reference;
  for (const quant::FormatInfo& format : quant::formats()) {
    if (!format.is_float) continue;
    for (const int64_t k : {7, 33, 300}) {
      const Linear w{.weight = memory.weight(format, {.rows = 8 * 64 + 41, .cols = k}),
                     .bias = memory.f32(1, 8 * 64 + 41)};
      for (const int64_t tokens : {16, 17, 24})
        compare(*cpu, reference, memory.f32(tokens, k), w, format.name);
    }
  }
}

// Blocks of bytes that are small or zero but for a few: scales are denormal, zero and of either sign.
TEST_P(Products, EqualTheReferenceForScalesThatVanishOrAreDenormal) {
  Memory memory(28);
  const auto cpu = open();
  ops::Reference reference;
  for (const quant::FormatInfo& format : quant::formats()) {
    for (const int byte : {0x00, 0x01, 0x02, 0x80, 0x81, 0x83}) {
      const Tensor weight = memory.weight(format, {.rows = 5, .cols = 768});
      auto* bytes = static_cast<unsigned char*>(weight.data);
      const auto size = static_cast<int64_t>(ops::weight_bytes(weight));
      for (int64_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i % 11 == 5 ? byte ^ 3 : byte);
      for (const int64_t tokens : {1, 3, 9})
        compare(*cpu, reference, memory.f32(tokens, 768), {.weight = weight}, format.name);
    }
  }
}

// A format that fell back to the general kernels would still be right, only slow.
TEST_P(Products, RunInPanelsForEveryIntegerFormat) {
  const bool vectors = GetParam()->name != "baseline";
  const Kernels& kernels = GetParam()->kernels();
  ASSERT_EQ(kernels.format_count, static_cast<int>(quant::formats().size()));
  for (int i = 0; i < kernels.format_count; ++i) {
    const quant::FormatInfo& format = *quant::find_format(kernels.formats[i].gguf_id);
    EXPECT_EQ(kernels.formats[i].panels, vectors && !format.is_float) << format.name;
  }
}

TEST_P(Products, EqualTheReferenceForActivationsThatVanishOrAreDenormal) {
  Memory memory(23);
  const auto cpu = open();
  ops::Reference reference;
  const quant::FormatInfo& format = *quant::find_format(quant::Q4_1::gguf_id);
  for (const float size : {0.0f, 0x1p-140f, 0x1p-101f, 0x1p-99f, 0x1p60f}) {
    for (const int64_t tokens : {1, 8})
      compare(*cpu, reference, memory.f32(tokens, 96, -size, size),
              {.weight = memory.weight(format, {.rows = 5, .cols = 96})}, format.name);
  }
}

TEST_P(Products, DoNotDependOnTheNumberOfThreads) {
  Memory memory(24);
  const quant::FormatInfo& format = *quant::find_format(quant::Q6_K::gguf_id);
  const Linear w{.weight = memory.weight(format, {.rows = 301, .cols = 768})};
  for (const int64_t tokens : {1, 40}) {
    const Tensor x = memory.f32(tokens, 768);
    const Positions at(tokens);
    const auto body = [&](Ops& op) { return op.linear(x, w); };
    ops::Reference reference;
    const Bits want = run(reference, at.batch, body);
    for (const int threads : {1, 2, 5}) {
      const auto cpu = open(Activations::kInt8, threads);
      EXPECT_EQ(cpu->threads(), threads);
      EXPECT_EQ(run(*cpu, at.batch, body), want) << threads;
    }
  }
}

TEST_P(Products, OfATokenDoNotDependOnItsNeighbours) {
  Memory memory(25);
  const auto cpu = open(Activations::kInt8x2);
  for (const quant::FormatInfo& format : quant::formats()) {
    const Linear w{.weight = memory.weight(format, {.rows = 19, .cols = 512})};
    const Tensor x = memory.f32(21, 512);
    const Positions all(21), alone(1);
    const Bits together = run(*cpu, all.batch, [&](Ops& op) { return op.linear(x, w); });
    for (const int64_t t : {0, 15, 20}) {
      const Tensor one{.data = x.f32() + t * 512, .shape = {.rows = 1, .cols = 512}};
      const Bits bits = run(*cpu, alone.batch, [&](Ops& op) { return op.linear(one, w); });
      EXPECT_EQ(bits, Bits(together.begin() + t * 19, together.begin() + (t + 1) * 19)) << format.name << t;
    }
  }
}

TEST_P(Products, OfExpertsEqualTheReference) {
  Memory memory(26);
  for (const Activations profile : kProfiles) {
    const auto cpu = open(profile);
    ops::Reference reference(profile);
    for (const quant::FormatInfo& format : quant::formats()) {
      const int64_t dim = 256, ffn = 256;
      const ops::Experts w{.gate = memory.weight(format, {3, ffn, dim}),
                           .up = memory.weight(format, {3, ffn, dim}),
                           .down = memory.weight(*quant::find_format(quant::Q8_0::gguf_id), {3, dim, ffn})};
      for (const int64_t tokens : {1, 11}) {
        const Tensor x = memory.f32(tokens, dim, -1e-3f, 1e-3f), logits = memory.f32(tokens, 3);
        const Positions at(tokens);
        const auto body = [&](Ops& op) { return op.experts(x, w, op.route(logits, {.top_k = 2})); };
        const Bits want = run(reference, at.batch, body);
        EXPECT_EQ(run(*cpu, at.batch, body), want) << format.name << tokens;
      }
    }
  }
}

// Several waves, experts that nobody chose, and one that many did.
TEST_P(Products, OfManyExpertsEqualTheReference) {
  Memory memory(29);
  for (const Activations profile : kProfiles) {
    const auto cpu = open(profile, 3);
    ops::Reference reference(profile);
    for (const uint32_t id : {quant::Q4_K::gguf_id, quant::Q8_0::gguf_id, quant::F16::gguf_id}) {
      const quant::FormatInfo& format = *quant::find_format(id);
      const ops::Experts w{.gate = memory.weight(format, {11, 40, 256}),
                           .up = memory.weight(*quant::find_format(quant::Q6_K::gguf_id), {11, 40, 256}),
                           .down = memory.weight(*quant::find_format(quant::F32::gguf_id), {11, 256, 40}),
                           .act = ops::Act::kGeluTanh};
      for (const int64_t tokens : {1, 2, 9, 70}) {
        const Tensor x = memory.f32(tokens, 256, -1e-3f, 1e-3f), logits = memory.f32(tokens, 11);
        for (int64_t t = 0; t < tokens; ++t) logits.f32()[t * 11 + 4] = t % 5 == 0 ? -9 : 9;
        const Positions at(tokens);
        const auto body = [&](Ops& op) { return op.experts(x, w, op.route(logits, {.top_k = 4})); };
        EXPECT_EQ(run(*cpu, at.batch, body), run(reference, at.batch, body)) << format.name << tokens;
      }
    }
  }
}

// A composite on the backend that fuses it, on the same backend in plain verbs, and by the reference.
class Composites : public test::OnEveryIsa {
 protected:
  using Body = std::function<Tensor(Ops&)>;
  void compare(ops::Executor& cpu, int64_t tokens, const Body& fused, const Body& plain) {
    const Positions at(tokens);
    ops::Reference reference(cpu.activations());
    const Bits want = run(cpu, at.batch, plain);
    EXPECT_EQ(run(cpu, at.batch, fused), want) << tokens;
    EXPECT_EQ(run(reference, at.batch, fused), want) << tokens;
  }
  Linear linear(Memory& memory, uint32_t format, int64_t rows, int64_t k, bool bias) {
    return {.weight = memory.weight(*quant::find_format(format), {.rows = rows, .cols = k}),
            .bias = bias ? memory.f32(1, rows) : Tensor{}};
  }
};

TEST_P(Composites, AreWhatTheirBodiesSayForOneToThirtyThreeTokens) {
  Memory memory(51);
  const uint32_t formats[][3] = {{quant::Q4_1::gguf_id, quant::Q4_1::gguf_id, quant::Q8_0::gguf_id},
                                 {quant::Q4_K::gguf_id, quant::Q4_K::gguf_id, quant::Q6_K::gguf_id},
                                 {quant::F16::gguf_id, quant::Q8_0::gguf_id, quant::Q3_K::gguf_id}};
  for (const Activations profile : kProfiles) {
    const auto cpu = open(profile, 3);
    for (const auto& f : formats) {
      const int64_t k = f[2] == quant::Q8_0::gguf_id ? 96 : 512;
      const Linear q = linear(memory, f[0], 75, k, true), wk = linear(memory, f[1], 33, k, false),
                   v = linear(memory, f[2], 1, k, true);
      const Linear gate = linear(memory, f[0], 47, k, false), up = linear(memory, f[2], 47, k, true);
      for (int64_t tokens = 1; tokens <= 33; ++tokens) {
        if (f[0] != quant::Q4_1::gguf_id && tokens % 4 != 1) continue;
        const Tensor x = memory.f32(tokens, k), a = memory.f32(tokens, 75);
        for (const int i : {0, 1, 2})
          compare(
              *cpu, tokens, [&](Ops& op) { return op.linears(x, q, wk, v)[i]; },
              [&](Ops& op) {
                return op.linear(x, i == 0 ? q : i == 1 ? wk : v);
              });
        compare(
            *cpu, tokens, [&](Ops& op) { return op.gated_linear(ops::Act::kSilu, x, gate, up); },
            [&](Ops& op) { return op.gated(ops::Act::kSilu, op.linear(x, gate), op.linear(x, up)); });
        compare(
            *cpu, tokens, [&](Ops& op) { return op.add_linear(a, x, q); },
            [&](Ops& op) { return op.add(a, op.linear(x, q)); });
      }
    }
  }
}

TEST_P(Composites, AreWhatTheirBodiesSayForEveryFormatAndLength) {
  Memory memory(52);
  const auto cpu = open();
  for (const quant::FormatInfo& format : quant::formats()) {
    for (const int64_t k : {32, 96, 576, 640, 896, 1536, 3584}) {
      if (k % format.block_elements != 0) continue;
      const Linear w = linear(memory, format.gguf_id, 20, k, false);
      const Linear up = linear(memory, format.gguf_id, 20, k, true);
      for (const int64_t tokens : {1, 9}) {
        const Tensor x = memory.f32(tokens, k), a = memory.f32(tokens, 20);
        compare(
            *cpu, tokens, [&](Ops& op) { return op.gated_linear(ops::Act::kGeluErf, x, w, up); },
            [&](Ops& op) { return op.gated(ops::Act::kGeluErf, op.linear(x, w), op.linear(x, up)); });
        compare(
            *cpu, tokens, [&](Ops& op) { return op.add_linear(a, x, up); },
            [&](Ops& op) { return op.add(a, op.linear(x, up)); });
      }
    }
  }
}

TEST_P(Composites, AreCountedAsTheVerbsTheyStandFor) {
  Memory memory(53);
  const Linear w = linear(memory, quant::Q8_0::gguf_id, 20, 64, false);
  const Tensor x = memory.f32(2, 64), a = memory.f32(2, 20);
  const Positions at(2);
  const auto counted = [&](ops::Executor& on) {
    run(on, at.batch, [&](Ops& op) {
      op.linears(x, w, w, w);
      op.gated_linear(ops::Act::kSilu, x, w, w);
      return op.add_linear(a, x, w);
    });
    std::string text;
    for (const OpCount& op : on.recorder().snapshot().ops)
      text += fmt::format("{} {} {}, ", op.name, op.calls, op.weight_bytes);
    return text;
  };
  ops::Reference reference;
  EXPECT_EQ(counted(*open()), counted(reference));
}

INSTANTIATE_TEST_SUITE_P(Isa, Composites, test::every_isa(), test::isa_name);
INSTANTIATE_TEST_SUITE_P(Isa, Products, test::every_isa(), test::isa_name);

}  // namespace
}  // namespace juno::cpu
