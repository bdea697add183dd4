// SPDX-License-Identifier: Apache-2.0
#include "server/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "server/refusal.h"

using namespace juno::server;

namespace {

// The message, or "" where it is read.
std::string refusal(std::string_view text) {
  try {
    read_json(text);
    return "";
  } catch (const Refusal& why) {
    EXPECT_EQ(why.status, 400);
    EXPECT_EQ(why.code, "invalid_json");
    EXPECT_FALSE(why.param);
    return why.message;
  }
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(Json, ReadsWhatIsJson) {
  const Json value = read_json(R"( {"b": [1, 2.5, -3, true, null], "a": "\ud83d\ude00\u0000"} )");
  EXPECT_EQ(value.begin().key(), "b") << "in the client's order";
  EXPECT_EQ(value["a"], std::string("\xF0\x9F\x98\x80\0", 5));
  EXPECT_EQ(value["b"][1], 2.5);
}

TEST(Json, SaysWhereItBreaks) {
  EXPECT_TRUE(contains(refusal(""), "ends too early, at byte 0")) << refusal("");
  EXPECT_TRUE(contains(refusal(R"({"a": [1, 2)"), "ends too early, at byte 11")) << refusal(R"({"a": [1, 2)");
  EXPECT_TRUE(contains(refusal("{} x"), "at byte 3")) << refusal("{} x");
  EXPECT_TRUE(contains(refusal(R"({"a": NaN})"), "at byte 6")) << refusal(R"({"a": NaN})");
}

TEST(Json, RefusesWhatOthersLetPass) {
  for (const char* text : {"{'a': 1}",     "[1,]",
                           "{\"a\":1,}",   "[01]",
                           "[1.]",         "[.5]",
                           "[+1]",         "[Infinity]",
                           "[-Infinity]",  "/* x */ 1",
                           "\"a\nb\"",     "\"\\x\"",
                           "[1] [2]",      "\"\\ud83d\"",
                           "\"\\ude00\"",  "\"\\ud83d\\u0041\"",
                           "\"\xff\"",     "\"\xed\xa0\x80\"",
                           "\"\xc0\x80\"", "tru",
                           "\"a"})
    EXPECT_NE(refusal(text), "") << text;
}

TEST(Json, RefusesAKeyTwice) {
  EXPECT_TRUE(contains(refusal(R"({"x": {"seed": 1, "seed": 2}})"), "'seed'"));
  EXPECT_TRUE(contains(refusal(R"({"a": 1, "\u0061": 2})"), "'a'")) << "spelled otherwise";
  EXPECT_EQ(refusal(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})"), "");
}

TEST(Json, GoesAtMost128LevelsDeep) {
  EXPECT_EQ(refusal(std::string(128, '[') + std::string(128, ']')), "");
  const std::string why = refusal(std::string(129, '[') + std::string(129, ']'));
  EXPECT_TRUE(contains(why, "128") && contains(why, "byte 128")) << why;
  EXPECT_NE(refusal("{\"m\":" + std::string(100000, '[')), "");
}

TEST(Json, KeepsNumbersThatNoDoubleHoldsAsInfinities) {
  const Json value = read_json(R"({"a": 1e999, "b": [-1e400, "1e999", 7, 9223372036854775808, 1e308]})");
  EXPECT_EQ(value["a"], HUGE_VAL);
  EXPECT_EQ(value["b"][0], -HUGE_VAL);
  EXPECT_EQ(value["b"][1], "1e999");
  EXPECT_EQ(value["b"][2], 7);
  EXPECT_EQ(value["b"][3], 9223372036854775808u);
  EXPECT_EQ(value["b"][4], 1e308);
  EXPECT_TRUE(has_infinity(value));
  EXPECT_TRUE(contains(refusal(R"({"a": 1e999} x)"), "at byte 13")) << refusal(R"({"a": 1e999} x)");
}

TEST(Json, ReadsAnObjectOfManyKeysInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  EXPECT_EQ(read_json(text + "}").size(), 200000u);
}

TEST(Json, WritesBytesThatAreNoTextAsReplacements) {
  EXPECT_EQ(to_text(Json{{"a", "x\xff"}}), "{\"a\":\"x\xEF\xBF\xBD\"}");
}
