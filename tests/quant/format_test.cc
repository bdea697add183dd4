// SPDX-License-Identifier: Apache-2.0
#include "quant/format.h"

#include <fstream>

#include "quant/support.h"

namespace juno::quant {
namespace {

using test::Random;

template <class F>
struct EveryFormat : ::testing::Test {};
TYPED_TEST_SUITE(EveryFormat, test::AllFormats, test::FormatName);

template <class F>
struct EveryIntegerFormat : ::testing::Test {};
TYPED_TEST_SUITE(EveryIntegerFormat, test::IntegerFormats, test::FormatName);

template <class F>
struct EveryFormatWithMinima : ::testing::Test {};
TYPED_TEST_SUITE(EveryFormatWithMinima, test::MinFormats, test::FormatName);

template <class F>
struct EveryQuantisableFormat : ::testing::Test {};
TYPED_TEST_SUITE(EveryQuantisableFormat, test::QuantisableFormats, test::FormatName);

// Pairs of a row's bytes and f32 bits, as tools/make_quant_goldens.py writes them.
struct Golden {
  std::vector<uint8_t> row;
  std::vector<uint32_t> bits;
};

std::vector<Golden> read_goldens(const std::string& file) {
  std::ifstream in(std::string(JUNO_SOURCE_DIR) + "/tests/quant/golden/" + file);
  std::vector<Golden> goldens;
  std::string key, hex;
  for (int lines = 0; in >> key >> hex; ++lines) {
    if (lines % 2 == 0) goldens.emplace_back();
    Golden& g = goldens.back();
    const size_t digits = key == "row" ? 2 : 8;
    for (size_t i = 0; i < hex.size(); i += digits) {
      const auto word = static_cast<uint32_t>(std::stoul(hex.substr(i, digits), nullptr, 16));
      if (key == "row") g.row.push_back(static_cast<uint8_t>(word));
      else g.bits.push_back(word);
    }
  }
  return goldens;
}

TYPED_TEST(EveryFormat, DequantisesToTheBitsOfGgufPy) {
  using F = TypeParam;
  const std::vector<Golden> goldens = read_goldens(std::string(F::name) + ".txt");
  ASSERT_FALSE(goldens.empty());
  for (const Golden& g : goldens) {
    std::vector<typename F::Block> row(g.row.size() / sizeof(typename F::Block));
    std::memcpy(row.data(), g.row.data(), g.row.size());
    std::vector<float> values(row.size() * F::block_size);
    ASSERT_EQ(values.size(), g.bits.size());
    dequantise_row<F>(row.data(), static_cast<int64_t>(values.size()), values.data());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(bits_of(values[i]), g.bits[i]) << "element " << i;
  }
}

TYPED_TEST(EveryQuantisableFormat, QuantisesToTheBytesOfGgufPy) {
  using F = TypeParam;
  const std::vector<Golden> goldens = read_goldens("quantise_" + std::string(F::name) + ".txt");
  ASSERT_FALSE(goldens.empty());
  for (const Golden& g : goldens) {
    std::vector<float> x;
    for (uint32_t bits : g.bits) x.push_back(float_of(bits));
    std::vector<uint8_t> bytes(g.row.size());
    ASSERT_EQ(bytes.size(), x.size() / F::block_size * sizeof(typename F::Block));
    std::vector<typename F::Block> row(x.size() / F::block_size);
    quantise_row<F>(x.data(), static_cast<int64_t>(x.size()), row.data());
    std::memcpy(bytes.data(), row.data(), bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i)
      ASSERT_EQ(bytes[i], g.row[i]) << "byte " << i << " for " << x[0];
  }
}

TYPED_TEST(EveryQuantisableFormat, ReproducesItsOwnValues) {
  using F = TypeParam;
  Random random(3);
  for (int n = 0; n < 200; ++n) {
    typename F::Block block;
    float x[F::block_size], y[F::block_size], z[F::block_size];
    for (float& v : x) v = random.between(-2.0f, 2.0f);
    F::quantise(x, block);
    dequantise_row<F>(&block, F::block_size, y);
    F::quantise(y, block);
    dequantise_row<F>(&block, F::block_size, z);
    for (int i = 0; i < F::block_size; ++i) ASSERT_EQ(y[i], z[i]);
  }
}

// v at its largest comes up in random blocks or in blocks of one byte, so the bound is no larger than it must
// be.
TYPED_TEST(EveryIntegerFormat, VReachesItsBoundAndNeverPassesIt) {
  using F = TypeParam;
  Random random(1);
  int largest = 0;
  for (int n = 0; n < 2256; ++n) {
    const auto block = n < 256 ? test::uniform_block<F>(n) : test::random_block<F>(random);
    for (int i = 0; i < F::block_size; ++i) largest = std::max(largest, std::abs(F::v(block, i)));
  }
  EXPECT_EQ(largest, F::max_v);
}

TYPED_TEST(EveryIntegerFormat, SumsOfAUnitStayExactAtTheExtreme) {
  using F = TypeParam;
  Random random(2);
  const auto check = [](const typename F::Block& block) {
    for (int at = 0; at < F::block_size; at += kUnit<F>) {
      int64_t sum = 0;
      for (int i = 0; i < kUnit<F>; ++i) sum += int64_t{std::abs(F::v(block, at + i))} * kMaxQ;
      ASSERT_LT(sum, 1 << 24);
      ASSERT_EQ(static_cast<int64_t>(static_cast<float>(sum)), sum);
    }
  };
  for (int n = 0; n < 256; ++n) check(test::uniform_block<F>(n));
  for (int n = 0; n < 2000; ++n) check(test::random_block<F>(random));
}

TYPED_TEST(EveryIntegerFormat, ValueIsDTimesVPlusMTimesU) {
  using F = TypeParam;
  Random random(4);
  for (int n = 0; n < 500; ++n) {
    const auto block = test::random_block<F>(random);
    for (int i = 0; i < F::block_size; ++i) {
      float want = F::d(block) * static_cast<float>(F::v(block, i));
      if constexpr (HasMin<F>) want += F::m(block) * static_cast<float>(F::u(block, i));
      ASSERT_EQ(value<F>(block, i), want);
    }
  }
}

TYPED_TEST(EveryIntegerFormat, UnpackEqualsV) {
  using F = TypeParam;
  Random random(5);
  for (int n = 0; n < 500; ++n) {
    const auto block = test::random_block<F>(random);
    int16_t v[F::block_size];
    unpack<F>(block, v);
    for (int i = 0; i < F::block_size; ++i) ASSERT_EQ(v[i], F::v(block, i)) << i;
  }
}

TYPED_TEST(EveryFormatWithMinima, UReachesItsBoundAndIsTheSameForEach16) {
  using F = TypeParam;
  Random random(6);
  int largest = 0;
  for (int n = 0; n < 1000; ++n) {
    const auto block = test::random_block<F>(random);
    int16_t u[F::block_size / kSumSize];
    unpack_minima<F>(block, u);
    for (int i = 0; i < F::block_size; ++i) {
      ASSERT_GE(F::u(block, i), 0);
      ASSERT_EQ(F::u(block, i), u[i / kSumSize]);
      largest = std::max(largest, F::u(block, i));
    }
  }
  EXPECT_EQ(largest, F::max_u);
}

TEST(Units, AreThoseOfTheContract) {
  EXPECT_EQ(kUnit<Q8_0>, 32);
  EXPECT_EQ(kUnit<MXFP4>, 32);
  EXPECT_EQ(kUnit<Q2_K>, 128);
  EXPECT_EQ(kUnit<Q3_K>, 128);
  EXPECT_EQ(kUnit<Q4_K>, 128);
  EXPECT_EQ(kUnit<Q5_K>, 64);
  EXPECT_EQ(kUnit<Q6_K>, 32);
  EXPECT_EQ(kUnit<IQ4_XS>, 32);
}

TEST(ActivationBlock, Is32OrFollowsTheRowForSuperblocks) {
  EXPECT_EQ(activation_block(32, 1024), 32);
  EXPECT_EQ(activation_block(1, 1024), 32);
  EXPECT_EQ(activation_block(256, 3072), 128);
  EXPECT_EQ(activation_block(256, 18944), 64);
  EXPECT_EQ(activation_block(256, 768), 32);
}

// 1 / d is infinite here, and 0 times it is NaN.
TYPED_TEST(EveryQuantisableFormat, ABlockOfTinyNumbersStaysTiny) {
  using F = TypeParam;
  float x[F::block_size] = {-1e-41f};
  typename F::Block block;
  F::quantise(x, block);
  for (int i = 0; i < F::block_size; ++i) EXPECT_LE(std::fabs(value<F>(block, i)), 1e-41f);
}

}  // namespace
}  // namespace juno::quant
