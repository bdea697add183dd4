// SPDX-License-Identifier: Apache-2.0
#include "api/golden_check.h"
#include "api/perplexity_check.h"

namespace juno::api {
namespace {

const std::string kName = "juno-demo-23m-q8_0";

TEST(Sha256, GivesThePublishedValues) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(DemoGoldens, PromptsWithInt8) { expect_prompts(*open_session(kDemo), kName + ".json", kInt8); }

TEST(DemoGoldens, PromptsWithInt8x2) {
  expect_prompts(*open_session(kDemo, "int8x2"), kName + ".json", kInt8x2);
}

TEST(DemoGoldens, PerplexityWithInt8) {
  expect_perplexity(*open_session(kDemo), kName + ".ppl.json", kInt8.perplexity, 2);
}

TEST(DemoGoldens, PerplexityWithInt8x2) {
  expect_perplexity(*open_session(kDemo, "int8x2"), kName + ".ppl.json", kInt8x2.perplexity, 2);
}

}  // namespace
}  // namespace juno::api
