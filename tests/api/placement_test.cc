// SPDX-License-Identifier: Apache-2.0
// Where layers go, what that takes, and that neither changes a bit. The reference backend plays the card.
#include "api/placement.h"

#include "api/golden_check.h"
#include "api/open.h"
#include "base/hash.h"

namespace juno::api {
namespace {

SessionOptions card(const std::string& path, const std::string& layers) {
  return {.model_path = path,
          .context = 200,
          .threads = 1,
          .backend = "reference",
          .gpu_layers = layers,
          .chunk = 16};
}

uint64_t hash(Session& session) {
  Fnv1a sum;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 80; ++i) ids.push_back(i * 37 % 128);
  take(session.logits(ids, {}, 0,
                      [&](int64_t, std::span<const float> row) { sum.add(row.data(), row.size_bytes()); }));
  return sum.value();
}

TEST(C49, TheEstimateIsWhatIsTakenToTheByte) {
  int combinations = 0;
  for (const char* name : {"llama-untied-q8_0", "qwen3moe", "gemma3"}) {
    for (const int64_t context : {100, 1000}) {
      for (const int chunk : {1, 32}) {
        for (const char* layers : {"all", "1"}) {
          SessionOptions o = card(arch(name), layers);
          o.context = context;
          o.chunk = chunk;
          const Opened parts = open_parts(o);
          ASSERT_EQ(parts.stages.size(), parts.estimates.size());
          for (size_t i = 0; i < parts.stages.size(); ++i) {
            const Estimate& e = parts.estimates[i];
            EXPECT_EQ(e.kept(), parts.stages[i].ops->device().held()) << name << ", stage " << i;
            EXPECT_GT(e.kv, 0u);
            EXPECT_GT(e.work, 0u);
          }
          ++combinations;
        }
      }
    }
  }
  EXPECT_GE(combinations, 20);
}

TEST(Placement, TheLastLayersGoToTheCard) {
  const auto session = take(Session::open(card(kDemo, "3")));
  const auto& devices = session->info().devices;
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].backend, "cpu");
  EXPECT_EQ(devices[0].first, 0);
  EXPECT_EQ(devices[0].last, 5);
  EXPECT_EQ(devices[1].backend, "reference");
  EXPECT_EQ(devices[1].last, 8);
  EXPECT_EQ(session->info().backend, "cpu+reference");
}

TEST(Placement, ChangesNoBit) {
  for (const char* name : {"llama-untied-q8_0", "qwen3moe", "gemma3"}) {
    SessionOptions alone = card(arch(name), "");
    alone.backend = "cpu";
    const uint64_t expected = hash(*take(Session::open(alone)));
    for (const char* layers : {"0", "1", "2", "all", "auto", "999"})
      EXPECT_EQ(hash(*take(Session::open(card(arch(name), layers)))), expected) << name << ", " << layers;
  }
}

TEST(Placement, SaysWhichLayersRunWhere) {
  std::string said;
  SessionOptions o = card(kDemo, "2");
  o.log = {[&](Level level, const std::string& text) {
    if (level == Level::kNotice) said += text;
  }};
  take(Session::open(o));
  EXPECT_EQ(said, "[api] layers 0 to 5 on the CPU; layers 6 to 7 on reference");
}

TEST(Placement, RefusesNumbersThatAreNone) {
  for (const char* layers : {"-1", "x", "1x", "1.5", " 1"}) {
    const auto opened = Session::open(card(kDemo, layers));
    ASSERT_FALSE(opened) << layers;
    EXPECT_EQ(opened.error().code, Code::kUsage);
  }
}

TEST(Placement, AnErrorLeavesNothingBehind) {
  const auto opened = Session::open({.model_path = kDemo, .backend = "rocm"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kDevice);
}

}  // namespace
}  // namespace juno::api
