// SPDX-License-Identifier: Apache-2.0
// Long and odd texts: constant stack, linear time, every byte comes back.
#include <pthread.h>
#include <time.h>

#include <cmath>

#include "tokenizer/decoder.h"
#include "tokenizer/merge.h"
#include "tokenizer/random_text.h"
#include "tokenizer/vocabularies.h"

namespace juno::tokenizer {
namespace {

const std::vector<std::string>& units() {
  static const std::vector<std::string> all{
      "a", " ", "\n", "\r\n", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\u4E2D", "\u0301", "\xFF"};
  return all;
}

std::string repeated(const std::string& unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

struct Job {
  const Tokenizer* tokenizer;
  std::string text;
  std::vector<int32_t> ids;
};

void* run_job(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  job.ids = job.tokenizer->encode(job.text);
  return nullptr;
}

TEST(C09, AMegabyteOfOneCharacterNeedsAConstantStack) {
  pthread_attr_t small;
  ASSERT_EQ(pthread_attr_init(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, 256 * 1024), 0);
  for (const std::string name : {"gpt-2", "llama-bpe", "qwen2", "llama-spm"}) {
    for (const std::string& unit : units()) {
      Job job{&family(name), repeated(unit, 1 << 20), {}};
      pthread_t thread;
      ASSERT_EQ(pthread_create(&thread, &small, run_job, &job), 0);
      ASSERT_EQ(pthread_join(thread, nullptr), 0);
      EXPECT_EQ(job.tokenizer->decode(job.ids), job.text) << name;
    }
  }
  pthread_attr_destroy(&small);
}

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  double best = 1e9;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const double begin = processor_seconds();
    EXPECT_FALSE(tokenizer.encode(text).empty());
    best = std::min(best, processor_seconds() - begin);
  }
  return best;
}

// Caches make a megabyte somewhat dearer than 64 pieces of 16 KB; the square of the length would be a slope
// of 2.
TEST(C10, TimeGrowsLikeTheLength) {
  for (const std::string name : {"gpt-2", "qwen2", "llama-spm"}) {
    for (const std::string& unit : units()) {
      const double small = seconds_to_encode(family(name), repeated(unit, 1 << 14));
      const double large = seconds_to_encode(family(name), repeated(unit, 1 << 19));
      EXPECT_LT(std::log2(large / small) / 5, 1.3) << name << " on " << unit;
    }
  }
}

TEST(C10, MergingARunAsksForPairsAtMostThreeTimesItsLength) {
  Scratch scratch;
  for (uint32_t n = 1 << 10; n <= 1 << 20; n *= 2) {
    scratch.symbols.clear();
    for (uint32_t i = 0; i < n; ++i) scratch.symbols.push_back({0, i, 1});
    uint64_t asked = 0;
    merge_long(scratch, 32, [&](const Symbol& a, const Symbol& b) -> Merge {
      ++asked;
      if (a.id != b.id) return {};
      return {static_cast<uint32_t>(a.id), a.id + 1};
    });
    EXPECT_EQ(scratch.symbols.size(), 1u);
    EXPECT_LE(asked, 3u * n);
  }
}

TEST(C13, EveryByteStringComesBack) {
  for (const std::string& name : families()) {
    const Tokenizer& tokenizer = family(name);
    SplitMix draw(13);
    for (int i = 0; i < 1000; ++i) {
      const std::string bytes = random_bytes(draw, draw.below(4097));
      const std::vector<int32_t> ids = tokenizer.encode(bytes);
      ASSERT_EQ(tokenizer.decode(ids), bytes) << name << ", string " << i;
      std::string joined;
      for (const int32_t id : ids) joined += tokenizer.piece(id);
      if (tokenizer.strips_first_blank() && !joined.empty()) joined.erase(0, 1);
      ASSERT_EQ(joined, bytes) << name << ", string " << i;
    }
  }
}

TEST(C13, ATokenIsTheBytesThatItsSpellingStandsFor) {
  for (const std::string& name : families()) {
    if (!is_byte_level(name)) continue;
    const gguf::Reader reader =
        take(gguf::Reader::open(data_file("tokenizers/ggml-vocab-" + name + ".gguf"), {}));
    const VocabularySource source = take(read_vocabulary(reader.metadata()));
    const Tokenizer& tokenizer = family(name);
    ASSERT_EQ(static_cast<size_t>(tokenizer.size()), source.tokens.size());
    for (int32_t id = 0; id < tokenizer.size(); ++id) {
      if ((*source.types)[static_cast<size_t>(id)] != 1) continue;
      std::string spelling;
      for (const char c : tokenizer.piece(id)) spelling += spelled(static_cast<uint8_t>(c));
      ASSERT_EQ(spelling, source.tokens[static_cast<size_t>(id)]) << name << ", token " << id;
    }
  }
}

}  // namespace
}  // namespace juno::tokenizer
