// SPDX-License-Identifier: Apache-2.0
// Ids of random texts against other libraries, and merging against the definition: search the best pair, join
// it, begin again.
#include "tokenizer/merge.h"

#include <map>

#include "tokenizer/pretokenizer.h"
#include "tokenizer/random_text.h"
#include "tokenizer/vocabularies.h"

namespace juno::tokenizer {
namespace {

template <class Numbers>
uint32_t fnv(const Numbers& numbers) {
  uint32_t h = 0x811C9DC5;
  for (const auto number : numbers) {
    for (int shift = 0; shift < 32; shift += 8)
      h = (h ^ (static_cast<uint32_t>(number) >> shift & 0xFF)) * 0x01000193;
  }
  return h;
}

// title → a hash for each random text
std::map<std::string, std::vector<uint32_t>> random_goldens() {
  std::map<std::string, std::vector<uint32_t>> goldens;
  std::ifstream in(data_file("tokenizers/random.txt"));
  std::vector<uint32_t>* hashes = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.find(' ') != line.npos) {
      hashes = &goldens[line];
      continue;
    }
    for (size_t i = 0; i + 8 <= line.size(); i += 8) {
      hashes->push_back(static_cast<uint32_t>(std::stoul(line.substr(i, 8), nullptr, 16)));
    }
  }
  return goldens;
}

TEST(C12, TenThousandRandomTextsGetTheIdsOfTheReference) {
  const auto goldens = random_goldens();
  for (const std::string name : {"gpt-2", "llama-bpe", "qwen2", "llama-spm"}) {
    const std::vector<uint32_t>& expected = goldens.at("ids " + name);
    ASSERT_EQ(expected.size(), 10000u);
    size_t different = 0;
    std::string first;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (fnv(family(name).encode(random_text(i))) == expected[i]) continue;
      if (different++ == 0) first = fmt::format("{}: {}", i, random_text(i));
    }
    EXPECT_EQ(different, 0u) << name << ", the first is text " << first;
  }
}

TEST(C11, WordsAreThoseOfThePublishedPatterns) {
  const auto goldens = random_goldens();
  size_t schemes = 0;
  for (const auto& [title, expected] : goldens) {
    if (title.substr(0, 5) != "cuts ") continue;
    ++schemes;
    const Pretokenizer* scheme = find_pretokenizer(title.substr(5));
    ASSERT_TRUE(scheme) << title;
    ASSERT_EQ(expected.size(), 2500u);
    size_t different = 0;
    std::string first;
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string text = random_text(i);
      Words words(*scheme, text);
      std::vector<size_t> sizes;
      for (std::string_view word; !(word = words.next()).empty();) sizes.push_back(word.size());
      if (fnv(sizes) == expected[i]) continue;
      if (different++ == 0) first = fmt::format("{}: {}", i, text);
    }
    EXPECT_EQ(different, 0u) << title << ", the first is text " << first;
  }
  EXPECT_EQ(schemes, 8u);
}

// Random merge rules over an alphabet of `letters`: any two tokens may join, with few ranks so that ties
// abound.
struct Rules {
  uint64_t seed;
  uint32_t ranks;
  Merge operator()(const Symbol& a, const Symbol& b) const {
    SplitMix draw(seed ^ static_cast<uint64_t>(a.id) << 32 ^ static_cast<uint64_t>(b.id));
    if (a.size + b.size > 12 || draw.below(3) == 0) return {};
    return {static_cast<uint32_t>(draw.below(ranks)), static_cast<int32_t>(draw.below(50))};
  }
};

std::vector<Symbol> merged_by_definition(std::vector<Symbol> s, const Rules& rules) {
  for (;;) {
    size_t best = 0;
    Merge chosen;
    for (size_t i = 0; i + 1 < s.size(); ++i) {
      const Merge m = rules(s[i], s[i + 1]);
      if (m.rank < chosen.rank) chosen = m, best = i;
    }
    if (chosen.rank == Merge::kNever) return s;
    s[best] = {chosen.id, s[best].begin, s[best].size + s[best + 1].size};
    s.erase(s.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

bool equal(const std::vector<Symbol>& a, const std::vector<Symbol>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Symbol& x, const Symbol& y) {
    return x.id == y.id && x.begin == y.begin && x.size == y.size;
  });
}

TEST(Merge, ShortAndLongWordsFollowTheDefinition) {
  Scratch scratch;  // reused: nothing may stay from word to word
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SplitMix draw(seed);
    const Rules rules{draw(), static_cast<uint32_t>(1 + draw.below(20))};
    std::vector<Symbol> word(1 + draw.below(seed % 10 == 0 ? 300 : kShortWord));
    for (uint32_t i = 0; i < word.size(); ++i)
      word[i] = {static_cast<int32_t>(draw.below(1 + seed % 5)), i, 1};
    const std::vector<Symbol> expected = merged_by_definition(word, rules);
    scratch.symbols = word;
    merge_long(scratch, rules.ranks, rules);
    ASSERT_TRUE(equal(scratch.symbols, expected)) << "long, seed " << seed;
    if (word.size() > kShortWord) continue;
    merge_short(word, rules);
    ASSERT_TRUE(equal(word, expected)) << "short, seed " << seed;
  }
}

}  // namespace
}  // namespace juno::tokenizer
