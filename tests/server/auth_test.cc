// SPDX-License-Identifier: Apache-2.0
#include "server/auth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace juno::server {
namespace {

constexpr const char* kKey = "sk-first-0123456789";

HttpRequest with(const std::string& name, const std::string& value) { return {.headers = {{name, value}}}; }

Keys keys(std::string_view text) {
  Keys k;
  take(k.add(text, "test"));
  return k;
}

TEST(Keys, TakesSeveralFromOneText) {
  const Keys k = keys("# team\nsk-first-0123456789, sk-second\r\n\tsk-third # old\n");
  for (const char* key : {kKey, "sk-second", "sk-third"})
    EXPECT_TRUE(k.tenant(with("Authorization", std::string("Bearer ") + key))) << key;
  for (const char* key : {"sk-fourth", "old", "#", "team", ""})
    EXPECT_FALSE(k.tenant(with("Authorization", std::string("Bearer ") + key))) << key;
}

TEST(Keys, AHashStandsForItsKey) {
  // printf sk-second | sha256sum
  const Keys k = keys("sha256:b464ce30b204dc60e335136ee46a01efe74914f4e4a6264f48448448642c9a0c");
  EXPECT_TRUE(k.tenant(with("Authorization", "Bearer sk-second")));
  EXPECT_FALSE(k.tenant(with("Authorization", "Bearer nothing")));
  Keys bad;
  for (const char* text : {"sha256:", "sha256:12", "sha256:zz", "gr\xc3\xbcn"})
    EXPECT_EQ(bad.add(text, "FILE").error().code, Code::kConfig) << text;
  EXPECT_NE(bad.add("sha256:1", "FILE").error().message.find("FILE"), std::string::npos);
}

TEST(Keys, C59_TakesAKeyFromEveryPlaceThatClientsPutItAndNoOther) {
  const Keys k = keys(kKey);
  const std::string key = kKey;
  EXPECT_TRUE(k.tenant(with("authorization", "Bearer " + key)));
  EXPECT_TRUE(k.tenant(with("Authorization", "bearer  " + key)));
  EXPECT_TRUE(k.tenant(with("X-Api-Key", key)));
  EXPECT_TRUE(k.tenant(with("Authorization", "Basic dXNlcjpzay1maXJzdC0wMTIzNDU2Nzg5")));  // user:KEY
  EXPECT_TRUE(k.tenant(with("Authorization", "Basic OnNrLWZpcnN0LTAxMjM0NTY3ODk=")));      // :KEY
  for (const std::string& value :
       {key, std::string("Bearer"), std::string("Bearer "), "Token " + key, "Basic " + key,
        "Bearer " + key + "x", "Bearer " + key.substr(1), "Bearer x" + key, std::string("Basic ===="),
        std::string("Basic dXNlcg==")})
    EXPECT_FALSE(k.tenant(with("Authorization", value))) << value;
  EXPECT_FALSE(k.tenant(with("Cookie", key)));
  EXPECT_FALSE(k.tenant({.query = "key=" + key}));
}

TEST(Keys, ATenantIsOfItsKeyAndDoesNotTellIt) {
  const Keys k = keys("sk-first-0123456789 sk-second");
  const auto first = k.tenant(with("x-api-key", kKey)), second = k.tenant(with("x-api-key", "sk-second"));
  EXPECT_EQ(first, k.tenant(with("Authorization", std::string("Bearer ") + kKey)));
  EXPECT_NE(first, second);
  EXPECT_EQ(first->size(), 17u);
  EXPECT_EQ(first->find("sk-"), std::string::npos);
}

// Medians of times that are taken in turn: what else runs here meets both.
TEST(Keys, C69_ComparingTakesTheSameTimeHoweverMuchIsRight) {
  const std::string key(64, 'k');
  const Keys k = keys(key);
  std::vector<HttpRequest> requests;
  for (size_t right : {size_t{0}, size_t{1}, size_t{32}, size_t{63}})
    requests.push_back(with("x-api-key", key.substr(0, right) + std::string(64 - right, 'x')));
  std::vector<std::vector<int64_t>> times(requests.size());
  for (int i = 0; i < 25000; ++i)
    for (size_t r = 0; r < requests.size(); ++r) {
      const auto begin = std::chrono::steady_clock::now();
      const bool found = k.tenant(requests[r]).has_value();
      times[r].push_back((std::chrono::steady_clock::now() - begin).count());
      ASSERT_FALSE(found);
    }
  std::vector<double> medians;
  for (auto& t : times) {
    std::ranges::nth_element(t, t.begin() + t.size() / 2);
    medians.push_back(static_cast<double>(t[t.size() / 2]));
  }
  const auto [least, most] = std::ranges::minmax(medians);
  EXPECT_LT(most, least * 1.05);
}

}  // namespace
}  // namespace juno::server
