// SPDX-License-Identifier: Apache-2.0
#include "grammar/json_schema.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "grammar/fault.h"
#include "grammar/matcher.h"
#include "grammar/schema_parts.h"

namespace juno::grammar {
namespace {

Json corpus() {
  std::ifstream file(JUNO_SOURCE_DIR "/tests/data/cases/json_schemas.json");
  return Json::parse(file);
}

Fault fault_of(const std::string& schema) {
  try {
    compile_json_schema(schema);
  } catch (const Fault& fault) {
    return fault;
  }
  ADD_FAILURE() << "accepted: " << schema;
  return {Refusal::kInvalidSchema, ""};
}

bool allows(const std::string& schema, std::string_view text) {
  const Automaton automaton = compile_json_schema(schema);
  return Matcher(automaton).matches(text);
}

TEST(JsonSchema, SupportedOnesOfTheCorpusAllowTheirValidValuesAndNoOthers) {
  int checked = 0;
  for (const Json& entry : corpus()) {
    if (entry["must"] != "support") continue;
    SCOPED_TRACE(entry["id"].get<std::string>() + ": " + entry["why"].get<std::string>());
    const Automaton automaton = compile_json_schema(entry["schema"].dump());
    const Matcher matcher(automaton);
    for (const Json& value : entry["valid"]) EXPECT_TRUE(matcher.matches(value.dump())) << value;
    for (const Json& value : entry["invalid"]) EXPECT_FALSE(matcher.matches(value.dump())) << value;
    ++checked;
  }
  EXPECT_EQ(checked, 54);
}

TEST(C22, RejectedOnesOfTheCorpusNameKeywordAndPointer) {
  int checked = 0;
  for (const Json& entry : corpus()) {
    if (entry["must"] != "reject") continue;
    SCOPED_TRACE(entry["id"].get<std::string>() + ": " + entry["why"].get<std::string>());
    const Fault fault = fault_of(entry["schema"].dump());
    EXPECT_EQ(fault.keyword, entry["keyword"]);
    EXPECT_EQ(fault.pointer, entry["at"]);
    EXPECT_EQ(fault.refusal == Refusal::kInvalidSchema ? "invalid_json_schema" : "unsupported_json_schema",
              entry["code"]);
    ++checked;
  }
  EXPECT_EQ(checked, 15);
}

TEST(JsonSchema, NumbersKeepTheirBoundsToTheLastDigit) {
  const std::string range = R"({"type":"number","exclusiveMinimum":-0.25,"maximum":12.5})";
  for (const char* in :
       {"-0.2499999999999999999", "0", "0.05", "9", "12", "12.5", "12.500", "12.4999999999999999999"})
    EXPECT_TRUE(allows(range, in)) << in;
  for (const char* out : {"-0.25", "-0.3", "-1", "12.50000000000000000001", "13", "100", "01", "1.", "1e0"})
    EXPECT_FALSE(allows(range, out)) << out;
  const std::string above = R"({"type":"number","exclusiveMinimum":0})";
  for (const char* in : {"0.0001", "1", "123456789012345678901234567890.5"})
    EXPECT_TRUE(allows(above, in)) << in;
  for (const char* out : {"0", "0.000", "-1"}) EXPECT_FALSE(allows(above, out)) << out;
}

TEST(JsonSchema, IntegerRangesAreExact) {
  for (const auto& [low, high] : {std::pair(-15, 7), std::pair(0, 100), std::pair(99, 1203),
                                  std::pair(-250, -98), std::pair(5, 5), std::pair(-1, 1)}) {
    const std::string schema = fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", low, high);
    const Automaton automaton = compile_json_schema(schema);
    const Matcher matcher(automaton);
    for (int i = -2000; i <= 2000; ++i)
      EXPECT_EQ(matcher.matches(std::to_string(i)), low <= i && i <= high) << schema << " " << i;
  }
}

TEST(JsonSchema, BoundsOfIntegersMayHaveFractionsAndExponents) {
  const std::string schema = R"({"type":"integer","exclusiveMinimum":-1.5,"exclusiveMaximum":1e1})";
  for (const char* in : {"-1", "0", "9"}) EXPECT_TRUE(allows(schema, in)) << in;
  for (const char* out : {"-2", "10", "-1.5"}) EXPECT_FALSE(allows(schema, out)) << out;
}

TEST(JsonSchema, OtherKeysAreNoneOfTheDescribedOnes) {
  const std::string schema =
      R"({"type":"object","properties":{"id":{"type":"integer"},"idea":{"type":"null"}},"additionalProperties":{"type":"string"}})";
  for (const char* in :
       {R"({"id":1,"k":"v"})", R"({"i":"v"})", R"({"ide":"v","id\n":"w"})", R"({"idea":null,"ideas":"x"})"})
    EXPECT_TRUE(allows(schema, in)) << in;
  for (const char* out : {R"({"id":"v"})", R"({"k":"v","id":"1"})", R"({"idea":"x"})", R"({"\u0069d":"v"})"})
    EXPECT_FALSE(allows(schema, out)) << out;
}

TEST(JsonSchema, WhiteSpaceIsAllowedButBounded) {
  const std::string schema =
      R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"null"}}},"required":["a"]})";
  EXPECT_TRUE(allows(schema, "{\n  \"a\": [\n    null, null\n  ]\n}"));
  EXPECT_FALSE(allows(schema, "{\n\n\"a\":[]}"));
  EXPECT_FALSE(allows(schema, "{\"a\":[]} "));
}

TEST(JsonSchema, UnknownKeywordsAreRefusedUnlessTheyAreExtensions) {
  EXPECT_EQ(fault_of(R"({"type":"string","minimun":3})").keyword, "minimun");
  EXPECT_TRUE(allows(R"({"type":"null","x-note":1})", "null"));
}

TEST(JsonSchema, WhatIsNoSchemaIsSaidSo) {
  for (const char* bad :
       {"", "[]", "3", "{", R"({"type":"text"})", R"({"properties":[]})", R"({"items":3})", R"({"enum":3})",
        R"({"required":"a"})", R"({"minLength":-1})", R"({"$ref":"#/nowhere"})"})
    EXPECT_EQ(fault_of(bad).refusal, Refusal::kInvalidSchema) << bad;
}

TEST(JsonSchema, DatesExist) {
  const std::string date = R"({"type":"string","format":"date"})";
  for (const char* in : {"\"2024-02-29\"", "\"2000-02-29\"", "\"2023-04-30\"", "\"1999-12-31\""})
    EXPECT_TRUE(allows(date, in)) << in;
  for (const char* out :
       {"\"2023-02-29\"", "\"1900-02-29\"", "\"2023-04-31\"", "\"2023-00-10\"", "\"2023-1-1\""})
    EXPECT_FALSE(allows(date, out)) << out;
}

// Deep nesting, long alternatives and huge counts either work or are refused, in bounded time.
TEST(C23, CompilingIsBounded) {
  std::string nested = "true", groups = "a", words;
  for (int i = 0; i < 1000; ++i) nested = R"({"type":"array","items":)" + nested + "}";
  for (int i = 0; i < 10000; ++i) groups = "(" + groups + ")";
  for (int i = 0; i < 50000; ++i) words += (i ? "|w" : "w") + std::to_string(i);
  const auto with_pattern = [](const std::string& p) {
    return R"({"type":"string","pattern":")" + p + "\"}";
  };
  for (const std::string& schema : {nested, with_pattern("(a*)*b"), with_pattern(groups), with_pattern(words),
                                    with_pattern("a{0,1000000}"), with_pattern("((a?){0,1000}){0,1000}"),
                                    std::string(R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})")}) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      const Automaton automaton = compile_json_schema(schema);
      Matcher(automaton).start();
    } catch (const Error&) {
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << schema.substr(0, 60);
  }
  const Automaton deep = compile_json_schema(nested);
  EXPECT_TRUE(Matcher(deep).matches(std::string(1000, '[') + "7" + std::string(1000, ']')));
  EXPECT_FALSE(Matcher(deep).matches("7"));
}

TEST(C24, LengthsCostNoMemory) {
  size_t nodes = 0;
  for (const char* limit : {"10", "10000", "100000"}) {
    const Automaton automaton =
        compile_json_schema(std::string(R"({"type":"string","minLength":3,"maxLength":)") + limit + "}");
    if (nodes == 0) nodes = automaton.nodes.size();
    EXPECT_EQ(automaton.nodes.size(), nodes);
    const Matcher matcher(automaton);
    const auto count = static_cast<size_t>(std::atoi(limit));
    EXPECT_TRUE(matcher.matches('"' + std::string(count, 'x') + '"'));
    EXPECT_FALSE(matcher.matches('"' + std::string(count + 1, 'x') + '"'));
    EXPECT_FALSE(matcher.matches("\"xx\""));
    EXPECT_EQ(matcher.nearby(matcher.read(matcher.start(), "\"xxxxx"), 4),
              matcher.nearby(matcher.read(matcher.start(), "\"xxxx"), 4));
  }
}

TEST(C24, CountsOfItemsCostNoMemory) {
  size_t nodes = 0;
  for (const int limit : {10, 10000, 100000}) {
    const Automaton automaton = compile_json_schema(
        R"({"type":"array","items":{"const":1},"minItems":2,"maxItems":)" + std::to_string(limit) + "}");
    if (nodes == 0) nodes = automaton.nodes.size();
    EXPECT_EQ(automaton.nodes.size(), nodes);
    if (limit > 10000) continue;  // reading so many takes a while
    const Matcher matcher(automaton);
    std::string items = "1";
    for (int i = 1; i < limit; ++i) items += ",1";
    EXPECT_TRUE(matcher.matches("[" + items + "]"));
    EXPECT_FALSE(matcher.matches("[" + items + ",1]"));
    EXPECT_FALSE(matcher.matches("[1]"));
  }
}

}  // namespace
}  // namespace juno::grammar
