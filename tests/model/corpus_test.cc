// SPDX-License-Identifier: Apache-2.0
// The files of tests/tools/make_bad_gguf.py that the model room judges: they open, and then are refused,
// warned of, or loaded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/support.h"

namespace juno::model::testing {
namespace {

namespace fs = std::filesystem;

// Of these kinds every file that the Reader opens is ours, but for the keys and warnings of the tokenizer.
constexpr const char* kKinds[] = {"valid",   "missing",  "shape",   "number",   "architecture", "kvtype",
                                  "unknown", "name",     "counts",  "array",    "weights",      "offset",
                                  "align",   "trailing", "version", "truncated"};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

// The corpus, made once; gone with the program.
class Corpus {
 public:
  Corpus() : folder_(fs::temp_directory_path() / fmt::format("juno-model-corpus-{}", getpid())) {
    const std::string command = fmt::format("python3 {}/tests/tools/make_bad_gguf.py '{}' > /dev/null",
                                            JUNO_SOURCE_DIR, folder_.string());
    made_ = std::system(command.c_str()) == 0;
  }
  ~Corpus() { fs::remove_all(folder_); }

  nlohmann::json files(std::string_view kind) const {
    EXPECT_TRUE(made_) << "the corpus needs python3 with numpy";
    nlohmann::json chosen = nlohmann::json::array();
    std::ifstream in(folder_ / "manifest.json");
    for (const auto& row : nlohmann::json::parse(in)) {
      if (row["kind"] == kind) chosen.push_back(row);
    }
    EXPECT_FALSE(chosen.empty()) << kind;
    return chosen;
  }
  std::string path(const std::string& file) const { return (folder_ / file).string(); }

 private:
  fs::path folder_;
  bool made_ = false;
};

const Corpus& corpus() {
  static const Corpus made;
  return made;
}

void judge(const nlohmann::json& row) {
  const std::string file = row["file"], must = row["must"], expect = row["expect_substring"];
  auto reader = gguf::Reader::open(corpus().path(file), {});
  if (!reader) {
    EXPECT_EQ(must, "reject") << file << ": " << reader.error().message;
    return;
  }
  Listener listener;
  const auto checked = check_model(*reader, 0, listener.log);
  const std::string said = checked ? listener.heard : checked.error().message;
  SCOPED_TRACE(file + ": " + said);
  if (expect.starts_with("tokenizer.")) {
    EXPECT_TRUE(checked);
  } else if (must == "reject") {
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::kBadData);
    EXPECT_TRUE(said.find(file) != std::string::npos) << "the message names the file";
  } else {
    EXPECT_TRUE(checked);
    EXPECT_EQ(listener.lines, must == "load" ? 0 : 1);
  }
  if (!expect.starts_with("tokenizer.")) {
    EXPECT_TRUE(lower(said).find(lower(expect)) != std::string::npos) << expect;
  }
}

void judge_all(std::initializer_list<std::string_view> kinds) {
  for (std::string_view kind : kinds)
    for (const auto& row : corpus().files(kind)) judge(row);
}

std::vector<std::vector<float>> logits_of(const std::string& file) {
  Bench bench(take(gguf::Reader::open(corpus().path(file), {})), 0, reference(ops::Activations::kInt8));
  return bench.run({{0, {1, 2, 3, 250, 7, 99, 42}}});
}

TEST(Corpus, EachFileOfOurKindsDoesAsItsManifestSays) {
  for (const char* kind : kKinds)
    for (const auto& row : corpus().files(kind)) judge(row);
}

TEST(C01, ShapesThatContradictTheKeysNameTheTensor) { judge_all({"shape"}); }

TEST(C02, CountsOfLayersAreBoundedByTheFile) { judge_all({"number", "counts"}); }

TEST(C05, UnknownKeysAndTensorsAreListedInOneWarning) { judge_all({"unknown", "name", "array"}); }

TEST(C05, UnknownKeysAndTensorsChangeNoLogit) {
  const auto good = logits_of("valid.gguf");
  for (const char* file :
       {"unknown-key.gguf", "unknown-tensor.gguf", "name-path.gguf", "number-file_type-9999.gguf"}) {
    EXPECT_TRUE(same_bits(good, logits_of(file))) << file;
  }
}

TEST(C06, EachMissingKeyAndTensorIsNamed) { judge_all({"missing"}); }

TEST(C07, ARemarkThatMakesNoSenseIsAWarning) {
  for (const auto& row : corpus().files("utf8")) {
    if (row["must"] == "load_with_warning") {
      EXPECT_TRUE(check_model(take(gguf::Reader::open(corpus().path(row["file"]), {})), 0, {}));
    }
  }
  judge(corpus().files("number").back());
  EXPECT_EQ(corpus().files("number").back()["file"], "number-file_type-9999.gguf");
}

}  // namespace
}  // namespace juno::model::testing
