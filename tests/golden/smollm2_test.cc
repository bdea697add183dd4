// SPDX-License-Identifier: Apache-2.0
// SmolLM2-135M-Instruct, which is not in the repository: looked for in JUNO_TEST_MODELS, then beside the
// sources.
#include <cstdlib>
#include <filesystem>

#include "api/golden_check.h"
#include "api/perplexity_check.h"

namespace juno::api {
namespace {

const std::string kName = "smollm2-135m-instruct-q4_1";

std::string model() {
  const char* folder = std::getenv("JUNO_TEST_MODELS");
  const std::string file = "/SmolLM2-135M-Instruct.Q4_1.gguf";
  for (const std::string& path :
       {std::string(folder ? folder : "") + file, kSource + "/../shared/data/models" + file}) {
    if (std::filesystem::exists(path)) return path;
  }
  return "";
}

class SmolLM2 : public testing::Test {
 protected:
  void SetUp() override {
    if (model().empty()) GTEST_SKIP() << "SmolLM2-135M-Instruct.Q4_1.gguf is not here; see JUNO_TEST_MODELS";
  }
};

TEST_F(SmolLM2, PromptsWithInt8) { expect_prompts(*open_session(model()), kName + ".json", kInt8); }

TEST_F(SmolLM2, PromptsWithInt8x2) {
  expect_prompts(*open_session(model(), "int8x2"), kName + ".json", kInt8x2);
}

TEST_F(SmolLM2, PerplexityWithInt8) {
  expect_perplexity(*open_session(model()), kName + ".ppl.json", kInt8.perplexity, 8);
}

TEST_F(SmolLM2, PerplexityWithInt8x2) {
  expect_perplexity(*open_session(model(), "int8x2"), kName + ".ppl.json", kInt8x2.perplexity, 8);
}

}  // namespace
}  // namespace juno::api
