// SPDX-License-Identifier: Apache-2.0
// The damaged files of tests/tools/make_bad_gguf.py, as far as the Reader judges them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "gguf/support.h"

namespace juno::gguf::testing {
namespace {

// Kinds whose rejection needs to know what a model or a tokenizer is: the Reader opens these files, and the
// rooms above refuse them.
constexpr std::string_view kLaterKinds[] = {"missing", "shape",     "number", "architecture",
                                            "utf8",    "tokenizer", "merges", "ids"};
// The same for single files of other kinds. A file without tensors is a vocabulary until a model is asked
// for.
constexpr std::string_view kLaterFiles[] = {"counts-tensors-0.gguf", "kvtype-string.gguf",
                                            "kvtype-float.gguf", "kvtype-negative.gguf"};
// The warnings that are the Reader's; all others need to know which keys and tensors are of use.
constexpr std::string_view kWarnings[] = {"utf8-general.name.gguf", "template-utf8.gguf"};

bool among(std::span<const std::string_view> list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

struct Case {
  std::string file, kind, must, expect;
  uint64_t bytes = 0;
  Outcome outcome;
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

bool contains(const std::string& text, const std::string& word) {
  return lower(text).find(lower(word)) != std::string::npos;
}

// Makes the files whose names contain `only` and opens each in a process of its own.
std::vector<Case> open_all(const std::string& only) {
  const TempDir folder;
  const std::string command = "python3 " JUNO_SOURCE_DIR "/tests/tools/make_bad_gguf.py --only '" + only +
                              "' '" + folder.path().string() + "' > /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0) << "the corpus needs python3 with numpy";
  std::vector<Case> cases;
  const std::string manifest = read_file(folder / "manifest.json");
  for (const auto& row : nlohmann::json::parse(manifest)) {
    Case c{.file = row["file"], .kind = row["kind"], .must = row["must"], .expect = row["expect_substring"]};
    const std::filesystem::path path = folder / c.file;
    c.bytes = is_directory(path) ? 0 : file_size(path);
    c.outcome = open_in_child(path.string());
    cases.push_back(std::move(c));
  }
  return cases;
}

void expect_refused(const Case& c) {
  SCOPED_TRACE(c.file + ": " + c.outcome.message);
  EXPECT_TRUE(c.outcome.code == 65 || c.outcome.code == 66) << c.outcome.code;
  EXPECT_TRUE(contains(c.outcome.message, c.expect)) << "expected: " << c.expect;
  EXPECT_TRUE(contains(c.outcome.message, c.file)) << "the message names the file";
}

// What the manifest asks for, where it is the Reader's to decide; that a file opens, where it is not.
void judge(const Case& c) {
  SCOPED_TRACE(c.file + ": " + c.outcome.message + c.outcome.warnings);
  EXPECT_FALSE(c.outcome.died);
  EXPECT_LT(c.outcome.ms, 1000);
  EXPECT_LT(c.outcome.growth, int64_t(c.bytes) + (32 << 20));
  const bool later = among(kLaterKinds, c.kind) || among(kLaterFiles, c.file);
  if (c.must == "reject" && !later) {
    expect_refused(c);
  } else {
    EXPECT_EQ(c.outcome.code, 0);
  }
  if (c.must == "load") {
    EXPECT_EQ(c.outcome.warnings, "");
  }
  if (among(kWarnings, c.file)) {
    EXPECT_TRUE(contains(c.outcome.warnings, c.expect));
  }
}

}  // namespace

TEST(Corpus, EveryFileDoesAsItsManifestSaysOrWaitsForALaterRoom) {
  const std::vector<Case> cases = open_all("");
  EXPECT_EQ(cases.size(), 205u);
  const auto refused = std::ranges::count_if(cases, [](const Case& c) { return c.outcome.code != 0; });
  EXPECT_EQ(refused, 83);
  for (const Case& c : cases) judge(c);
}

TEST(C01, WrongSizesAndOffsetsNameTheTensor) {
  for (const char* kind : {"dims-", "offset-"})
    for (const Case& c : open_all(kind)) judge(c);
}

TEST(C02, EveryFieldHasALimit) {
  for (const char* kind : {"length-", "dims-", "type-", "kvtype-", "name-", "keys-"})
    for (const Case& c : open_all(kind)) judge(c);
}

TEST(C03, ZerosAndEmptyNamesAreErrorsLikeAnyOther) {
  for (const char* kind : {"dims-", "keys-", "name-", "align-"})
    for (const Case& c : open_all(kind)) judge(c);
}

TEST(C04, AbsurdCountsAreRefusedAtOnce) {
  for (const char* kind : {"counts-", "array-count"}) {
    for (const Case& c : open_all(kind)) {
      judge(c);
      SCOPED_TRACE(c.file);
      EXPECT_LT(c.outcome.ms, 50);
      EXPECT_LT(c.outcome.growth, 16 << 20);
    }
  }
}

TEST(C05, UnknownKeysAndTensorsAreNoErrorOfTheReader) {
  for (const char* kind : {"unknown-", "name-path"}) {
    const std::vector<Case> cases = open_all(kind);
    EXPECT_FALSE(cases.empty());
    for (const Case& c : cases) EXPECT_EQ(c.outcome.code, 0) << c.outcome.message;
  }
}

TEST(C07, NonsenseInDescriptiveKeysIsAtMostAWarning) {
  for (const char* kind : {"number-file_type", "utf8-general"}) {
    const std::vector<Case> cases = open_all(kind);
    EXPECT_FALSE(cases.empty());
    for (const Case& c : cases) EXPECT_EQ(c.outcome.code, 0) << c.outcome.message;
  }
}

}  // namespace juno::gguf::testing
