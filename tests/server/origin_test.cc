// SPDX-License-Identifier: Apache-2.0
#include "server/origin.h"

#include <gtest/gtest.h>

namespace juno::server {
namespace {

Origin judge(const std::string& host, const std::string& origin, const OriginRules& rules) {
  HttpRequest request;
  request.headers.emplace_back("Host", host);
  if (!origin.empty()) request.headers.emplace_back("Origin", origin);
  return judge_origin(request, rules);
}

TEST(Origin, C65_KnowsTheNamesOfLoopback) {
  for (const char* host : {"localhost", "LOCALHOST:80", "localhost.", "a.localhost:1", "127.0.0.1",
                           "127.1.2.3:8080", "[::1]:8080", "[::1]"})
    EXPECT_TRUE(is_loopback_name(host)) << host;
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "xlocalhost", "127.0.0.1.evil.example",
        "127.evil.example", "0.0.0.0", "10.0.0.1", "[::2]:80", "[::1", "2130706433", ":80", "::1"})
    EXPECT_FALSE(is_loopback_name(host)) << host;
}

TEST(Origin, C65_OnLoopbackHostMustBeItsName) {
  const OriginRules rules{.loopback = true, .port = 8080, .allowed = {"https://app.example"}};
  EXPECT_EQ(judge("localhost:8080", "", rules), Origin::kOwn);
  EXPECT_EQ(judge("evil.example:8080", "", rules), Origin::kForeign);
  EXPECT_EQ(judge("evil.example:8080", "http://evil.example:8080", rules), Origin::kForeign);
  EXPECT_EQ(judge("evil.example:8080", "https://app.example", rules), Origin::kForeign);
}

TEST(Origin, C65_ForeignOriginsAreThoseThatNobodyListed) {
  const OriginRules rules{.loopback = true, .port = 8080, .allowed = {"https://app.example"}};
  for (const char* own : {"http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"})
    EXPECT_EQ(judge("127.0.0.1:8080", own, rules), Origin::kOwn) << own;
  EXPECT_EQ(judge("127.0.0.1:8080", "https://app.example", rules), Origin::kAllowed);
  for (const char* foreign : {"http://evil.example", "null", "http://localhost:3000", "http://localhost",
                              "http://app.example", "https://app.example.evil", "https://app.example:444",
                              "file://", "http://localhost:8080.evil.example", "x"})
    EXPECT_EQ(judge("127.0.0.1:8080", foreign, rules), Origin::kForeign) << foreign;
}

TEST(Origin, C65_WhereOthersMayComeTheOriginIsHeldToTheHost) {
  const OriginRules rules{.loopback = false, .port = 443, .allowed = {}};
  EXPECT_EQ(judge("llm.example", "", rules), Origin::kOwn);
  EXPECT_EQ(judge("llm.example", "https://llm.example", rules), Origin::kOwn);
  EXPECT_EQ(judge("llm.example", "https://evil.example", rules), Origin::kForeign);
}

}  // namespace
}  // namespace juno::server
