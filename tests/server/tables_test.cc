// SPDX-License-Identifier: Apache-2.0
// The tables of the OpenAI routes, held to rules that all of their fields obey.
#include "server/openai/tables.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "server/anthropic/tables.h"
#include "server/inference.h"
#include "server/openai/conversation.h"

using namespace juno::server;

namespace {

struct Table {
  const char* name;
  const Fields& fields;
  std::string least;  // what it requires
};

std::vector<Table> tables() {
  return {{"chat", chat_fields(), R"("model":"m","messages":[{"role":"user","content":"a"}])"},
          {"completions", completion_fields(), R"("model":"m","prompt":"a")"},
          {"embeddings", embedding_fields(), R"("model":"m","input":"a")"}};
}

// And those of the other routes that take numbers.
std::vector<Table> numeric_tables() {
  std::vector<Table> all = tables();
  all.push_back({"responses", response_fields(), R"("model":"m","input":"a")"});
  all.push_back({"messages", message_fields(),
                 R"("model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"}])"});
  all.push_back({"inference", inference_fields(), R"("prompt":"a")"});
  return all;
}

// "code param", or "" where it is taken.
std::string verdict(const Table& route, const std::string& field) {
  Check check;
  Json body = read_json("{" + route.least + "}");
  body.update(read_json("{" + field + "}"));
  check.body(body, route.fields);
  check_messages(body, check);
  try {
    check.finish();
    return "";
  } catch (const Refusal& why) {
    return why.code + " " + why.param.value_or("null");
  }
}

std::string chat(const std::string& messages) {
  Check check;
  const Json body = read_json(R"({"model":"m","messages":[)" + messages + "]}");
  check.body(body, chat_fields());
  check_messages(body, check);
  try {
    check.finish();
    return "";
  } catch (const Refusal& why) {
    return why.code + " " + why.param.value_or("null");
  }
}

}  // namespace

TEST(Tables, NameEachFieldOnce) {
  for (const Table& route : tables()) {
    std::set<std::string> names;
    for (const Field& field : route.fields) {
      EXPECT_TRUE(names.insert(field.name).second) << route.name << " " << field.name;
      if (!field.alias_of.empty()) EXPECT_TRUE(names.count(field.alias_of)) << field.name;
    }
    EXPECT_EQ(verdict(route, "\"user\":\"u\""), "") << route.name;
  }
}

TEST(C60, EveryNumericFieldHasATypeAndARange) {
  const std::map<std::string, long double> numbers = {{"-9223372036854775808", -9223372036854775808.0L},
                                                      {"-1", -1},
                                                      {"0", 0},
                                                      {"2147483648", 2147483648.0L},
                                                      {"9223372036854775808", 9223372036854775808.0L},
                                                      {"1e308", 1e308L},
                                                      {"1e999", HUGE_VALL},
                                                      {"-1e999", -HUGE_VALL},
                                                      {"0.5", 0.5L}};
  int fields = 0;
  for (const Table& route : numeric_tables()) {
    for (const Field& field : route.fields) {
      if (field.forms.size() != 1 || field.stand != Field::Stand::kHonoured) continue;
      const Form& form = field.forms[0];
      const bool integer = form.kind == Kind::kInteger;
      if (!integer && form.kind != Kind::kNumber) continue;
      ++fields;
      const std::string quoted = "\"" + field.name + "\":";
      for (const auto& [text, value] : numbers) {
        const long double low = integer ? static_cast<long double>(form.least) : form.low;
        const long double high = integer ? static_cast<long double>(form.most) : form.high;
        std::string want = " " + field.name;
        if (integer && text == "0.5") want = "invalid_type" + want;
        else if (value > high)
          want = (integer ? "integer_above_max_value" : "decimal_above_max_value") + want;
        else if (value < low || (form.open_low && value == low))
          want = (integer ? "integer_below_min_value" : "decimal_below_min_value") + want;
        else want = "";
        EXPECT_EQ(verdict(route, quoted + text), want) << route.name << " " << text;
      }
      for (const char* text : {"\"1\"", "true", "[]", "{}"})
        EXPECT_EQ(verdict(route, quoted + text), "invalid_type " + field.name) << route.name << " " << text;
      const std::string absent = field.required ? "missing_required_parameter " + field.name : "";
      EXPECT_EQ(verdict(route, quoted + "null"), absent) << route.name;
    }
  }
  EXPECT_GT(fields, 35);
}

TEST(Messages, HoldWhatTheirRoleMay) {
  EXPECT_EQ(chat(R"({"role":"user","content":"a"})"), "");
  EXPECT_EQ(chat(R"({"role":"user"})"), "missing_required_parameter messages[0].content");
  EXPECT_EQ(chat(R"({"role":"user","content":null})"), "invalid_type messages[0].content");
  EXPECT_EQ(chat(R"({"role":"assistant","content":null})"), "invalid_type messages[0].content");
  EXPECT_EQ(chat(R"({"role":"assistant","refusal":"no"})"), "");
  EXPECT_EQ(chat(R"({"role":"user","content":"a","refusal":"no"})"), "invalid_value messages[0].refusal");
  EXPECT_EQ(chat(R"({"role":"user","content":"a","reasoning_content":"x"})"),
            "invalid_value messages[0].reasoning_content");
  EXPECT_EQ(chat(R"({"role":"user","content":"a","tool_call_id":"x"})"),
            "invalid_value messages[0].tool_call_id");
  EXPECT_EQ(chat(R"({"role":"tool","content":"a"})"), "missing_required_parameter messages[0].tool_call_id");
  const std::string call =
      R"({"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"x"}}]})";
  EXPECT_EQ(chat(call + R"(,{"role":"tool","content":"a","tool_call_id":"c"})"), "");
  EXPECT_EQ(chat(call + R"(,{"role":"tool","content":"a","tool_call_id":"d"})"),
            "invalid_value messages[1].tool_call_id");
  EXPECT_EQ(chat(R"({"role":"user","content":"a","annotations":[]})"), "");
  EXPECT_EQ(chat(R"({"role":"user","content":"a","annotations":[1]})"),
            "unsupported_parameter messages[0].annotations");
  EXPECT_EQ(chat(R"({"role":"user","content":"a","function_call":{}})"),
            "unsupported_parameter messages[0].function_call");
}

TEST(Messages, BecomeWhatTemplatesTake) {
  const Json given = read_json(
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"name":null},
    {"role":"assistant","refusal":"no","tool_calls":[]}])");
  const Json want = read_json(R"([{"role":"user","content":"a\nb"},{"role":"assistant","content":"no"}])");
  EXPECT_EQ(template_messages(given), want);
}
