// SPDX-License-Identifier: Apache-2.0
#include "quant/format_info.h"

#include <set>

#include "quant/support.h"

namespace juno::quant {
namespace {

TEST(FormatInfo, EveryFormatOfTheListIsFoundByItsNumber) {
  ASSERT_GE(formats().size(), 16u);
  std::set<std::string> names;
  for (const FormatInfo& info : formats()) {
    EXPECT_EQ(find_format(info.gguf_id), &info);
    names.insert(info.name);
  }
  EXPECT_EQ(names.size(), formats().size());
  EXPECT_STREQ(find_format(12)->name, "Q4_K");
}

TEST(FormatInfo, AnUnknownNumberIsNotFound) {
  EXPECT_EQ(find_format(4), nullptr);  // Q4_2, long gone
  EXPECT_EQ(find_format(0xffffffff), nullptr);
}

TEST(FormatInfo, SizesAreThoseOfTheFile) {
  EXPECT_EQ(find_format(0)->row_bytes(576), 2304);
  EXPECT_EQ(find_format(8)->row_bytes(576), 612);
  EXPECT_EQ(find_format(14)->row_bytes(512), 420);
  EXPECT_EQ(find_format(14)->activation_block(512), 64);
}

template <class F>
struct InfoOf : ::testing::Test {};
TYPED_TEST_SUITE(InfoOf, test::AllFormats, test::FormatName);

TYPED_TEST(InfoOf, DoesWhatTheFormatDoes) {
  using F = TypeParam;
  const FormatInfo& info = *find_format(F::gguf_id);
  EXPECT_STREQ(info.name, F::name);
  EXPECT_EQ(info.is_float, FloatFormat<F>);
  EXPECT_EQ(info.has_min, HasMin<F>);
  EXPECT_EQ(info.quantise_row != nullptr, Quantisable<F>);

  test::Random random(21);
  const auto w = test::random_row<F>(random, 512);
  const test::Activations a(test::random_floats(random, 512), info.activation_block(512));
  EXPECT_EQ(bits_of(info.dot_groups(w.data(), a.row, 0, 8)), bits_of(dot<F>(w.data(), a.row)));
  std::vector<float> x(512), y(512);
  info.dequantise_row(w.data(), 512, x.data());
  dequantise_row<F>(w.data(), 512, y.data());
  EXPECT_EQ(std::memcmp(x.data(), y.data(), 512 * sizeof(float)), 0);
}

}  // namespace
}  // namespace juno::quant
