// SPDX-License-Identifier: Apache-2.0
#include "quant/dot.h"

#include <algorithm>

#include "base/bits.h"
#include "quant/support.h"

namespace juno::quant {
namespace {

using test::Activations;
using test::Random;

template <class F>
struct IntegerDot : ::testing::Test {};
TYPED_TEST_SUITE(IntegerDot, test::IntegerFormats, test::FormatName);

template <class F>
struct FloatDot : ::testing::Test {};
TYPED_TEST_SUITE(FloatDot, test::FloatFormats, test::FormatName);

template <class F>
struct EveryDot : ::testing::Test {};
TYPED_TEST_SUITE(EveryDot, test::AllFormats, test::FormatName);

// Random weights whose sums f32 can hold.
template <class F>
std::vector<typename F::Block> moderate_row(Random& random, int64_t k) {
  const auto moderate = [](const typename F::Block& block) {
    for (int i = 0; i < F::block_size; ++i)
      if (!(std::fabs(value<F>(block, i)) < 1e9f)) return false;
    return true;
  };
  auto row = test::random_row<F>(random, k);
  for (auto& block : row)
    while (!moderate(block)) block = test::random_block<F>(random);
  return row;
}

template <class F>
int activation_block_for(int64_t k) {
  return activation_block(F::block_size, k);
}

struct Terms {
  long double sum = 0, magnitude = 0;  // of what an exact evaluation adds up
  void add(long double term) {
    sum += term;
    magnitude += std::fabs(term);
  }
};

// All of (d v + m u)(dx q) without the order of the contract. Products that share a rounded factor are summed
// as integers first, as their roundings act on the sum.
template <IntegerFormat F>
Terms exact_terms(const std::vector<typename F::Block>& w, const Activations& a) {
  Terms terms;
  const int unit = std::min(kUnit<F>, a.row.block);
  for (int64_t at = 0; at < a.row.k; at += unit) {
    const auto& block = w[static_cast<size_t>(at / F::block_size)];
    const long double dx = a.d[static_cast<size_t>(at / a.row.block)];
    int64_t products = 0, minima = 0;
    for (int64_t k = at; k < at + unit; ++k) {
      const int i = static_cast<int>(k % F::block_size), q = a.q[static_cast<size_t>(k)];
      products += F::v(block, i) * q;
      if constexpr (HasMin<F>) minima += F::u(block, i) * q;
    }
    terms.add(F::d(block) * dx * static_cast<long double>(products));
    if constexpr (HasMin<F>) terms.add(F::m(block) * dx * static_cast<long double>(minima));
  }
  return terms;
}

// Roundings a term passes through at most: its own scale, then one a step of the chain, then three of the
// tree.
double rounding_bound(const Terms& terms, int64_t steps) {
  return static_cast<double>(terms.magnitude) * static_cast<double>(steps + 4) * 0x1.01p-24 + 0x1p-140;
}

TYPED_TEST(IntegerDot, IsWithinItsRoundingsOfTheExactProduct) {
  using F = TypeParam;
  Random random(11);
  for (int64_t k : test::kLengths) {
    if (k % F::block_size) continue;
    const int block = activation_block_for<F>(k);
    for (int n = 0; n < 4; ++n) {
      const auto w = moderate_row<F>(random, k);
      const Activations a(test::random_floats(random, k), block);
      const Terms exact = exact_terms<F>(w, a);
      const int64_t steps = ((k / block + 7) / 8) * (block / std::min(kUnit<F>, block) + 1);
      EXPECT_NEAR(dot<F>(w.data(), a.row), static_cast<double>(exact.sum), rounding_bound(exact, steps)) << k;
    }
  }
}

// The contract again, written another way: rows unpacked first, integers summed backwards in 64 bits, each
// block handed to the group that owns it.
template <IntegerFormat F>
float dot_in_other_words(const std::vector<typename F::Block>& w, const Activations& a) {
  std::vector<int16_t> v(w.size() * F::block_size), u(w.size() * F::block_size / kSumSize);
  for (size_t b = 0; b < w.size(); ++b) {
    unpack<F>(w[b], &v[b * F::block_size]);
    if constexpr (HasMin<F>) unpack_minima<F>(w[b], &u[b * F::block_size / kSumSize]);
  }
  const auto block = static_cast<size_t>(a.row.block), unit = std::min<size_t>(kUnit<F>, block);
  const size_t blocks = a.d.size();
  float group[8] = {};
  for (size_t b = 0, g = 0; b < blocks; ++b) {
    while (b >= (g + 1) * blocks / 8) ++g;
    const auto& scales = w[b * block / F::block_size];
    const float s = F::d(scales) * a.d[b];
    for (size_t at = b * block; at < (b + 1) * block; at += unit) {
      int64_t sum = 0;
      for (size_t i = unit; i-- > 0;) sum += int64_t{v[at + i]} * a.q[at + i];
      EXPECT_LT(std::abs(sum), 1 << 24);
      group[g] = std::fma(s, static_cast<float>(sum), group[g]);
    }
    if constexpr (HasMin<F>) {
      int64_t sum = 0;
      for (size_t i = block; i-- > 0;) sum += int64_t{u[(b * block + i) / kSumSize]} * a.q[b * block + i];
      EXPECT_LT(std::abs(sum), 1 << 24);
      const float m = F::m(scales) * a.d[b];
      group[g] = std::fma(m, static_cast<float>(sum), group[g]);
    }
  }
  return ((group[0] + group[1]) + (group[2] + group[3])) + ((group[4] + group[5]) + (group[6] + group[7]));
}

TYPED_TEST(IntegerDot, HasTheBitsOfTheContractInOtherWords) {
  using F = TypeParam;
  Random random(12);
  for (int64_t k : test::kLengths) {
    if (k % F::block_size) continue;
    for (int n = 0; n < 4; ++n) {
      const auto w = test::random_row<F>(random, k);
      const Activations a(test::random_floats(random, k), activation_block_for<F>(k));
      ASSERT_EQ(bits_of(dot<F>(w.data(), a.row)), bits_of(dot_in_other_words<F>(w, a))) << k;
    }
  }
}

// Blocks of one byte hold each format's largest integers; activations of +-127 have the signs of v.
TYPED_TEST(IntegerDot, IsExactInItsIntegersAtTheWorstCase) {
  using F = TypeParam;
  for (int64_t k : {1024, 1536, 1280}) {  // activation blocks of 128, 64 and 32
    for (int byte = 0; byte < 256; ++byte) {
      const auto block = test::uniform_block<F>(byte);
      if (!test::has_finite_scales<F>(block)) continue;
      const std::vector<typename F::Block> w(static_cast<size_t>(k / F::block_size), block);
      std::vector<float> x;
      for (int64_t i = 0; i < k; ++i)
        x.push_back(F::v(block, static_cast<int>(i % F::block_size)) < 0 ? -1.0f : 1.0f);
      const Activations a(x, activation_block_for<F>(k));
      ASSERT_EQ(bits_of(dot<F>(w.data(), a.row)), bits_of(dot_in_other_words<F>(w, a))) << k << ' ' << byte;
    }
  }
}

TYPED_TEST(EveryDot, OfRanksAddsUpToTheWhole) {
  using F = TypeParam;
  Random random(13);
  for (int64_t k : {int64_t{768}, int64_t{3072}, int64_t{18944}}) {
    const auto w = moderate_row<F>(random, k);
    const Activations a(test::random_floats(random, k), activation_block_for<F>(k));
    for (int ranks : {2, 4, 8}) {
      float parts[8];
      for (int r = 0; r < ranks; ++r)
        parts[r] = dot_groups<F>(w.data(), a.row, 8 * r / ranks, 8 * (r + 1) / ranks);
      ASSERT_EQ(bits_of(neighbour_tree(parts, ranks)), bits_of(dot<F>(w.data(), a.row))) << k << ' ' << ranks;
    }
  }
}

// Also lengths that no block divides.
constexpr int64_t kFloatLengths[] = {1, 7, 16, 33, 100, 576, 896, 3584, 18944};

TYPED_TEST(FloatDot, HasTheBitsOfTheContractInOtherWords) {
  using F = TypeParam;
  Random random(14);
  for (int64_t k : kFloatLengths) {
    const auto w = moderate_row<F>(random, k);
    const std::vector<float> x = test::random_floats(random, k);
    const int64_t blocks = (k + 31) / 32;
    float acc[8][16] = {};
    for (int64_t i = 0; i < k; ++i) {
      int g = 0;
      while (i / 32 >= (g + 1) * blocks / 8) ++g;
      float& lane = acc[g][i % 16];
      lane = std::fma(F::value(w[static_cast<size_t>(i)], 0), x[static_cast<size_t>(i)], lane);
    }
    float y[8];
    for (int g = 0; g < 8; ++g) {
      for (int width : {8, 4, 2, 1})
        for (int j = 0; j < width; ++j) acc[g][j] += acc[g][j + width];
      y[g] = acc[g][0];
    }
    const float want = ((y[0] + y[1]) + (y[2] + y[3])) + ((y[4] + y[5]) + (y[6] + y[7]));
    ASSERT_EQ(bits_of(dot<F>(w.data(), {.x = x.data(), .k = k})), bits_of(want)) << k;
  }
}

TYPED_TEST(FloatDot, IsWithinItsRoundingsOfTheExactProduct) {
  using F = TypeParam;
  Random random(15);
  for (int64_t k : kFloatLengths) {
    const auto w = moderate_row<F>(random, k);
    const std::vector<float> x = test::random_floats(random, k);
    Terms exact;
    for (size_t i = 0; i < x.size(); ++i) exact.add(static_cast<long double>(F::value(w[i], 0)) * x[i]);
    const int64_t steps = k / 8 / 16 + 4 + 4;
    EXPECT_NEAR(dot<F>(w.data(), {.x = x.data(), .k = k}), static_cast<double>(exact.sum),
                rounding_bound(exact, steps));
  }
}

// Other compilers, processors and optimisation levels must give these very bits.
template <class... Fs>
uint64_t hash_of_dots() {
  juno::test::Hash hash;
  Random random(16);
  const auto add = [&]<class F>(List<F>) {
    for (int64_t k : {768, 3584, 14336}) {
      const auto w = moderate_row<F>(random, k);
      const Activations a(test::random_floats(random, k), activation_block_for<F>(k));
      hash.add(dot<F>(w.data(), a.row));
    }
  };
  (add(List<Fs>{}), ...);
  return hash.value();
}

TEST(Dot, BitsArePinned) {
  EXPECT_EQ((hash_of_dots<F32, F16, BF16>()), 0xac99176a41aa63beu);
  EXPECT_EQ((hash_of_dots<Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4>()), 0x19319ea945de5df9u);
  EXPECT_EQ((hash_of_dots<Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_XS>()), 0x4cce4fc64e3fa9c1u);
}

TEST(Dot, GroupsShareOutAnyNumberOfBlocks) {
  for (int64_t blocks : {1, 3, 8, 19, 296}) {
    EXPECT_EQ(group_begin(0, blocks), 0);
    EXPECT_EQ(group_begin(kGroups, blocks), blocks);
    for (int g = 0; g < kGroups; ++g) EXPECT_LE(group_begin(g, blocks), group_begin(g + 1, blocks));
  }
}

}  // namespace
}  // namespace juno::quant
