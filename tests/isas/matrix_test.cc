// SPDX-License-Identifier: Apache-2.0
// The product of every format on every instruction set, for all the shapes and numbers that kernels treat
// apart: equal to the reference, bit for bit.
#include "backend/cpu/isa_test.h"
#include "quant/formats.h"

namespace juno::cpu {
namespace {

using ops::Activations;
using ops::Ops;
using ops::test::Bits;
using ops::test::Memory;
using ops::test::Positions;
using ops::test::run;
using quant::FormatInfo;
using quant::test::Random;

constexpr int64_t kLengths[] = {32, 96, 256, 576, 640, 896, 1536, 3072, 3584, 14336, 18944};
constexpr int64_t kLong = 640;  // from here on one row and few tokens, or the reference takes minutes

// What the numbers are like.
enum class Kind { kRandom, kLargest, kDenormal, kZero };
constexpr const char* kKinds[] = {"random", "largest", "denormal", "zero"};

// Gives the block's scales these f16 bits, or the least exponents.
template <class F>
void set_scales(typename F::Block& b, uint16_t half) {
  if constexpr (requires { b.d = half; }) b.d = half;
  if constexpr (requires { b.dmin = half; }) b.dmin = half;
  if constexpr (requires { b.m = half; }) b.m = half;
  if constexpr (requires { b.e = uint8_t{0}; }) b.e = static_cast<uint8_t>(half == 0 ? 0 : half & 3);
}

// Largest: integers at the ends of their ranges, and sub-scales too; scales are as they come.
template <class F>
void change(Kind kind, Random& random, typename F::Block& b) {
  constexpr uint8_t kEnds[] = {0x00, 0x7f, 0x80, 0xff, 0x0f, 0xf0, 0x3f};
  if (kind == Kind::kLargest && quant::IntegerFormat<F>) {
    typename F::Block ends;
    std::memset(&ends, kEnds[random.word() % std::size(kEnds)], sizeof ends);
    if constexpr (requires { ends.d = b.d; }) ends.d = b.d;
    if constexpr (requires { ends.dmin = b.dmin; }) ends.dmin = b.dmin;
    if constexpr (requires { ends.m = b.m; }) ends.m = b.m;
    if constexpr (requires { ends.e = b.e; }) ends.e = b.e;
    b = ends;
  }
  if (kind == Kind::kDenormal) set_scales<F>(b, static_cast<uint16_t>(random.word() & 0x83ff));
  if (kind == Kind::kDenormal && quant::FloatFormat<F>) {
    constexpr uint32_t kExponent = std::is_same_v<F, quant::F16> ? 0x7c00 : 0x7f80;  // of the upper 16 bits
    uint16_t upper;
    auto* at = reinterpret_cast<char*>(&b) + sizeof b - sizeof upper;
    std::memcpy(&upper, at, sizeof upper);
    upper &= static_cast<uint16_t>(~kExponent);
    std::memcpy(at, &upper, sizeof upper);
  }
  if (kind == Kind::kZero && random.word() % 2 == 0) std::memset(&b, 0, sizeof b);
  if (kind == Kind::kZero) set_scales<F>(b, random.word() % 2 == 0 ? 0x8000 : 0);
}

template <class... Fs>
void change_all(Kind kind, Random& random, const Tensor& weight, quant::List<Fs...>) {
  const auto each = [&]<class F>(F*) {
    auto* blocks = static_cast<typename F::Block*>(weight.data);
    for (int64_t i = 0; i < weight.shape.size() / F::block_size; ++i) change<F>(kind, random, blocks[i]);
  };
  ((static_cast<uint32_t>(weight.dtype) == Fs::gguf_id ? each(static_cast<Fs*>(nullptr)) : void()), ...);
}

// Largest: every quantised number is 127 or -127. Denormal: about the size below which a block counts as
// zero.
float activation(Kind kind, Random& random, int64_t i) {
  const float x = random.between(-3, 3);
  if (kind == Kind::kLargest) return x < 0 ? -2.0f : 2.0f;
  if (kind == Kind::kDenormal) return x * (i / 32 % 3 == 0 ? 0x1p-120f : 0x1p-101f);
  if (kind == Kind::kZero) return i / 32 % 2 == 0 ? x : x < 0 ? -0.0f : 0.0f;
  return x;
}

// All rows and tokens for each length: what tools/isa_report asks for.
bool whole(int64_t k) { return k < kLong || std::getenv("JUNO_WHOLE_MATRIX"); }

struct Shape {
  int64_t outputs, tokens;
};

std::vector<Shape> shapes(int64_t k) {
  if (!whole(k)) return {{1, 1}, {1, 3}, {1, 17}, {16, 1}};
  constexpr int64_t kTokens[] = {1, 17, 2, 8, 3, 16, 5, 7, 18, 9};
  std::vector<Shape> list;
  for (int64_t n = 1; n <= 33; ++n) list.push_back({n, kTokens[n % std::ssize(kTokens)]});
  return list;
}

class Matrix : public ::testing::TestWithParam<std::tuple<const Isa*, const FormatInfo*>> {
 protected:
  void SetUp() override {
    const Isa& isa = *std::get<0>(GetParam());
    if (isa.supported()) return;
    ASSERT_FALSE(test::needed(isa)) << "this processor has no " << isa.name;
    GTEST_SKIP() << "this processor has no " << isa.name;
  }

  // Products of some rows and tokens are parts of the one of all.
  void compare(ops::Executor& cpu, const Bits& want, const Tensor& x, const Tensor& weight,
               const char* kind) {
    const int64_t all = weight.rows();
    for (const Shape& shape : shapes(x.cols())) {
      if (shape.outputs > all || shape.tokens > x.rows()) continue;
      const Tensor some{x.data, x.dtype, {.rows = shape.tokens, .cols = x.cols()}};
      const Tensor rows{weight.data, weight.dtype, {.rows = shape.outputs, .cols = x.cols()}};
      const Positions at(shape.tokens);
      const Bits got = run(cpu, at.batch, [&](Ops& op) { return op.linear(some, {.weight = rows}); });
      Bits part;
      for (int64_t t = 0; t < shape.tokens; ++t)
        part.insert(part.end(), want.begin() + t * all, want.begin() + t * all + shape.outputs);
      EXPECT_EQ(got, part) << kind << ", k " << x.cols() << ", outputs " << shape.outputs << ", tokens "
                           << shape.tokens;
      ++products_;
      const Tensor uploaded = take(cpu.device().upload(rows));
      if (uploaded.data == rows.data) continue;
      const Bits turned = run(cpu, at.batch, [&](Ops& op) { return op.linear(some, {.weight = uploaded}); });
      EXPECT_EQ(turned, part) << kind << ", turned, k " << x.cols() << ", outputs " << shape.outputs
                              << ", tokens " << shape.tokens;
      ++turned_;
    }
  }

  int products_ = 0, turned_ = 0;
};

TEST_P(Matrix, EqualsTheReference) {
  const auto [isa, format] = GetParam();
  Memory memory(51);
  for (const Activations profile : {Activations::kInt8, Activations::kInt8x2}) {
    if (format->is_float && profile == Activations::kInt8x2) continue;  // floats know no profile
    const auto cpu = take(open_cpu({2, std::string(isa->name), profile}));
    ops::Reference reference(profile);
    for (const int64_t k : kLengths) {
      if (k % format->block_elements != 0) continue;
      for (const Kind kind : {Kind::kRandom, Kind::kLargest, Kind::kDenormal, Kind::kZero}) {
        if (profile == Activations::kInt8x2 && kind == Kind::kZero) continue;
        const Shape most[] = {
            {33, 18}, {1, 18}, {16, 1}};  // of a long one: a row of many tokens, or rows of one
        for (const Shape& shape : whole(k) ? std::span(most, 1) : std::span(most + 1, 2)) {
          const Tensor weight = memory.weight(*format, {.rows = shape.outputs, .cols = k});
          change_all(kind, memory.random(), weight, quant::Formats{});
          const Tensor x = memory.f32(shape.tokens, k);
          for (int64_t i = 0; i < x.shape.size(); ++i) x.f32()[i] = activation(kind, memory.random(), i);
          const Positions at(x.rows());
          const Bits want =
              run(reference, at.batch, [&](Ops& op) { return op.linear(x, {.weight = weight}); });
          compare(*cpu, want, x, weight, kKinds[static_cast<int>(kind)]);
        }
      }
    }
  }
  RecordProperty("products", products_);
  RecordProperty("turned", turned_);
  const bool panels = isa->name != std::string_view("baseline");
  EXPECT_EQ(turned_ > 0, panels && !format->is_float && format->name != std::string_view("MXFP4"));
}

auto every_format() {
  std::vector<const FormatInfo*> list;
  for (const FormatInfo& format : quant::formats()) list.push_back(&format);
  return ::testing::ValuesIn(list);
}

INSTANTIATE_TEST_SUITE_P(Isa, Matrix, ::testing::Combine(test::every_isa(), every_format()),
                         [](const ::testing::TestParamInfo<Matrix::ParamType>& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param)->name,
                                              std::get<1>(info.param)->name);
                         });

}  // namespace
}  // namespace juno::cpu
