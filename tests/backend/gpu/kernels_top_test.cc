// SPDX-License-Identifier: Apache-2.0
// The greatest logits of a row, against a sort of all of them.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "backend/gpu/kernel_test.h"

namespace juno::gpu {
namespace {

constexpr float kInf = __builtin_inff();

// Rows of logits, and of each how many are wanted.
struct Case {
  std::vector<std::vector<float>> rows;
  std::vector<int> wanted;
  int vocab = 0;  // of each row; the rest is padding
};

struct Found {
  std::vector<uint32_t> bits;
  std::vector<int32_t> ids;
  friend bool operator==(const Found&, const Found&) = default;
};

Found expected(const Case& c) {
  Found all;
  for (size_t r = 0; r < c.rows.size(); ++r) {
    const std::vector<float>& x = c.rows[r];
    std::vector<int32_t> ids(static_cast<size_t>(c.vocab));
    std::iota(ids.begin(), ids.end(), 0);
    if (!std::ranges::all_of(x, [](float v) { return std::isfinite(v); })) {  // of which only this is said
      for (int i = 0; i < c.wanted[r]; ++i) all.ids.push_back(i == 0 ? -1 : -2);
      all.bits.resize(all.ids.size());
      continue;
    }
    std::ranges::stable_sort(ids, [&](int32_t a, int32_t b) { return x[a] > x[b]; });
    for (int i = 0; i < c.wanted[r]; ++i) {
      all.ids.push_back(i < c.vocab ? ids[i] : -1);
      all.bits.push_back(i < c.vocab ? juno::bits_of(x[ids[i]]) : 0);
    }
  }
  return all;
}

Found found(const Case& c, uint32_t weather) {
  const auto rows = static_cast<int32_t>(c.rows.size()), columns = static_cast<int32_t>(c.rows[0].size());
  std::vector<float> logits;
  for (const auto& row : c.rows) logits.insert(logits.end(), row.begin(), row.end());
  std::vector<int32_t> first(1);
  for (int k : c.wanted) first.push_back(first.back() + k);
  std::vector<uint32_t> arrived(c.rows.size());
  std::vector<uint64_t> parts(c.rows.size() * top_pieces(columns) * kMostTop, 0x7f7f7f7f7f7f7f7f);
  std::vector<Pair32> top(static_cast<size_t>(first.back()) + 1, Pair32{{7, 7}});
  host::run(plan(TopArgs{.logits = logits.data(),
                         .first = first.data(),
                         .arrived = arrived.data(),
                         .parts = parts.data(),
                         .top = top.data(),
                         .rows = rows,
                         .columns = columns,
                         .n = c.vocab}),
            host::Weather(weather));
  EXPECT_EQ(top.back().x[0], 7u) << "written past the end";
  Found all;
  for (size_t r = 0; r < c.rows.size(); ++r) {
    const bool odd = c.wanted[r] > 0 && static_cast<int32_t>(top[first[r]].x[1]) == -1 && c.vocab > 0;
    for (int i = first[r]; i < first[r + 1]; ++i) {
      all.bits.push_back(odd ? 0 : top[i].x[0]);
      all.ids.push_back(odd && i > first[r] ? -2 : static_cast<int32_t>(top[i].x[1]));
    }
  }
  return all;
}

void expect_sorted(const Case& c, const std::string& what) {
  SCOPED_TRACE(what);
  const Found want = expected(c);
  for (const uint32_t weather : {0u, 7u}) {
    const Found got = found(c, weather);
    EXPECT_EQ(got.ids, want.ids);
    EXPECT_EQ(got.bits, want.bits);
  }
}

std::vector<float> random_row(int n, uint32_t seed) {
  std::mt19937 gen(seed);
  std::normal_distribution<float> dist(0, 4);
  std::vector<float> row(static_cast<size_t>(n));
  for (float& x : row) x = dist(gen);
  return row;
}

Case one(std::vector<float> row, int wanted) {
  const auto n = static_cast<int>(row.size());
  return {.rows = {std::move(row)}, .wanted = {wanted}, .vocab = n};
}

TEST(GpuTop, OfEveryNumberFromOneToTheMost) {
  const std::vector<float> row = random_row(700, 1);
  for (int k = 1; k <= kMostTop; ++k) expect_sorted(one(row, k), fmt::format("{} of 700", k));
}

TEST(GpuTop, OfEverySizeOfVocabulary) {
  for (int n : {1, 2, 31, 255, 256, 257, 4096, 4097, 8192, 128256, 262147})
    for (int k : {1, 50, kMostTop}) expect_sorted(one(random_row(n, 2), k), fmt::format("{} of {}", k, n));
}

TEST(GpuTop, OfEqualsTheLowestIds) {
  for (int n : {300, 8192, 20000}) {
    expect_sorted(one(std::vector<float>(static_cast<size_t>(n), -1.5f), 100),
                  fmt::format("all {} equal", n));
    std::vector<float> few(static_cast<size_t>(n), -7.0f);  // ties on both sides of where blocks meet
    for (int i = n / 3; i < n; i += 37) few[static_cast<size_t>(i)] = 3.0f;
    expect_sorted(one(few, 64), fmt::format("ties among {}", n));
    std::vector<float> zeros(static_cast<size_t>(n), -0.0f);
    for (int i = 5; i < n; i += 3) zeros[static_cast<size_t>(i)] = 0.0f;
    expect_sorted(one(zeros, 128), fmt::format("zeros of both signs, {}", n));
  }
}

TEST(GpuTop, WhereverTheGreatestStand) {
  std::vector<float> row(16384);
  std::iota(row.begin(), row.end(), -8000.0f);
  expect_sorted(one(row, 128), "ascending: all in the last piece");
  std::ranges::reverse(row);
  expect_sorted(one(row, 128), "descending");
  std::vector<float> heaped(4096, 0.0f);  // the greatest of a piece are all held by 128 threads
  for (int i = 0; i < 4096; ++i)
    if (i % 256 < 128) heaped[static_cast<size_t>(i)] = static_cast<float>(i + 1);
  expect_sorted(one(heaped, 128), "heaped");
  expect_sorted(one(heaped, 127), "heaped, one less");
}

TEST(GpuTop, OfNumbersAtTheEndsOfTheRange) {
  std::vector<float> row = random_row(9000, 3);
  for (size_t i = 0; i < row.size(); ++i)
    if (i % 2 == 0)
      row[i] = juno::float_of(static_cast<uint32_t>(i * 977 % 0x7fffff) | (i % 4 ? 0x80000000u : 0));
  for (size_t i = 1; i < row.size(); i += 2) row[i] = -std::abs(row[i]);
  expect_sorted(one(row, 128), "denormals");
  row[8999] = std::numeric_limits<float>::max();
  row[17] = std::numeric_limits<float>::lowest();
  expect_sorted(one(row, 3), "the largest");
}

TEST(GpuTop, SaysWhichRowsAreNotFinite) {
  for (float odd : {kInf, -kInf, std::nanf("")}) {
    Case c{.vocab = 9000};
    for (uint32_t r = 0; r < 4; ++r) c.rows.push_back(random_row(9100, 10 + r));
    c.rows[1][8999] = odd;
    c.rows[2][9050] = odd;  // padding, which the CPU looks at too
    c.wanted = {3, 60, 1, 128};
    expect_sorted(c, fmt::format("{}", odd));
  }
}

TEST(GpuTop, OfManyRowsThatWantEachAnotherNumber) {
  for (int rows = 1; rows <= 33; rows += rows < 4 ? 1 : 7) {
    Case c{.vocab = 4500};
    for (int r = 0; r < rows; ++r) {
      c.rows.push_back(random_row(4600, 100u + static_cast<uint32_t>(r)));
      for (int i = 4500; i < 4600; ++i) c.rows.back()[static_cast<size_t>(i)] = 1000.0f;  // padding
      c.wanted.push_back(r % 3 == 1 ? 0 : r % 3 == 2 ? 1 : r * 37 % kMostTop + 1);
    }
    expect_sorted(c, fmt::format("{} rows", rows));
  }
}

}  // namespace
}  // namespace juno::gpu
