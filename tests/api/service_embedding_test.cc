// SPDX-License-Identifier: Apache-2.0
#include "api/service_embedding.h"

#include <cmath>
#include <numeric>

#include "api/service_check.h"

namespace juno::api {
namespace {

using Vectors = std::vector<std::vector<float>>;

std::vector<int32_t> ids(int64_t count) {
  std::vector<int32_t> list;
  for (int64_t i = 0; i < count; ++i) list.push_back(static_cast<int32_t>(300 + i * 37 % 5000));
  return list;
}

TEST(Embedding, VectorsHaveUnitLengthAndFollowTheirInputs) {
  const auto service = open_service({.embeddings = true});
  EXPECT_EQ(service->embedding_size(), 512);
  const Vectors all = take(service->embed({.inputs = {ids(3), ids(70), ids(1)}}));
  ASSERT_EQ(all.size(), 3u);
  for (const auto& v : all) {
    ASSERT_EQ(v.size(), 512u);
    EXPECT_NEAR(std::inner_product(v.begin(), v.end(), v.begin(), 0.0), 1, 1e-6);
  }
  EXPECT_EQ(take(service->embed({.inputs = {ids(70)}}))[0], all[1]) << "whatever else is asked";
  expect_idle(*service);
}

TEST(Embedding, PoolingDecidesWhichPositionsCount) {
  const auto service = open_service({.embeddings = true});
  const auto embed = [&](const std::string& pooling, int64_t count) {
    return take(service->embed({.inputs = {ids(count)}, .pooling = pooling}))[0];
  };
  EXPECT_EQ(embed("", 9), embed("mean", 9));
  EXPECT_EQ(embed("cls", 9), embed("cls", 20)) << "the first sees nothing of what follows";
  EXPECT_EQ(embed("cls", 1), embed("last", 1));
  EXPECT_NE(embed("last", 9), embed("mean", 9));
  const auto wrong = service->embed({.inputs = {ids(2)}, .pooling = "max"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kUsage);
}

TEST(C31, TheInnerBatchDoesNotShow) {
  Vectors before;
  for (const int chunk : {32, 512}) {
    const auto service =
        take(Service::open({.model_path = kDemo, .chunk = chunk}, {.sequences = 4, .embeddings = true}));
    const Vectors now = take(service->embed({.inputs = {ids(1), ids(511), ids(512), ids(513), ids(1024)}}));
    EXPECT_TRUE(before.empty() || now == before) << chunk;
    before = now;
    const auto over = service->embed({.inputs = {ids(2), ids(1025)}});
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().code, Code::kBadData);
    EXPECT_NE(over.error().message.find("1025 tokens"), std::string::npos);
  }
}

TEST(Embedding, AModelWithoutPoolingGivesNone) {
  const auto service = open_service();
  EXPECT_EQ(service->embedding_size(), 0);
  const auto refused = service->embed({.inputs = {ids(2)}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
}

TEST(Embedding, GoesOnBesideRequests) {
  const auto service = open_service({.sequences = 2, .embeddings = true});
  const Vectors alone = take(service->embed({.inputs = {ids(100)}}));
  Work work{.prompt = asked(*service, "Hi"), .max_tokens = 60, .ignore_end = true};
  const HeardChoice expected = run(*service, work)->choice();
  const auto heard = start(*service, work);
  EXPECT_EQ(take(service->embed({.inputs = {ids(100)}})), alone);
  heard->wait();
  EXPECT_EQ(heard->choice().ids, expected.ids);
}

}  // namespace
}  // namespace juno::api
