// SPDX-License-Identifier: Apache-2.0
#include "server/fields.h"

#include <gtest/gtest.h>

using namespace juno::server;

namespace {

const Fields& table() {
  static const Fields fields = {
      required("model", text(1), "which"),
      optional("t", number(0, 2), "1", "a number"),
      optional("above", number_above(0, 10), "1", "a number above 0"),
      optional("n", integer(1, 16), "1", "an integer"),
      optional("seed", integer(INT64_MIN, INT64_MAX), "random", "any integer"),
      alias("x_n", "n", integer(1, 16), "older name"),
      optional("stop", either(text(1, 4), list(text(1, 4), 0, 2)), "none", "a text or texts"),
      optional("prompt", either(list(text()), either(list(integer(0, 9)), list(list(integer(0, 9), 1)))), "",
               "forms"),
      optional("name", text_of(Chars::kName, 1, 3), "", "a name"),
      optional("tier", words({"auto"}, {"flex"}), "auto", "a word"),
      no_op("store", boolean(), {false}, "nothing is stored"),
      no_op("modalities", list(words({"text"}, {"audio"})), {Json::array({"text"})}, "text alone"),
      unsupported("functions", "use tools"),
      elsewhere("messages", "/v1/chat/completions takes it"),
      optional("bias", map(number(-1, 1)), "{}", "by token"),
      optional("parts",
               list(variants({deciding(required("type", words({"text", "call"}, {"image"}), "kind"))}, "type",
                             {{"text", {required("text", text(), "the text")}},
                              {"call", {required("id", text(1), "its id")}}})),
               "", "parts"),
  };
  return fields;
}

std::string verdict(std::string_view body) {
  Check check;
  check.body(read_json(body), table());
  try {
    check.finish();
    return "";
  } catch (const Refusal& why) {
    EXPECT_EQ(why.status, 400);
    return why.code + " " + why.param.value_or("null");
  }
}

std::string with(const std::string& rest) { return verdict("{\"model\": \"m\", " + rest + "}"); }

}  // namespace

TEST(Fields, NameTheFirstFaultAsTheClientWroteIt) {
  EXPECT_EQ(verdict(R"({"model": "m"})"), "");
  EXPECT_EQ(verdict("[]"), "invalid_type null");
  EXPECT_EQ(verdict("{}"), "missing_required_parameter model");
  EXPECT_EQ(verdict(R"({"model": null})"), "missing_required_parameter model");
  EXPECT_EQ(verdict(R"({"model": ""})"), "empty_string model");
  EXPECT_EQ(with(R"("colour": 1)"), "unknown_parameter colour");
  EXPECT_EQ(with(R"("parts": [{"type": "text", "text": "a", "x": 1}])"), "unknown_parameter parts[0].x");
  EXPECT_EQ(with(R"("messages": [])"), "unknown_parameter messages");
  EXPECT_EQ(with(R"("functions": [])"), "unsupported_parameter functions");
  EXPECT_EQ(with(R"("functions": null, "t": null, "store": null)"), "");
}

TEST(Fields, OfSeveralFaultsTellTheEarliestStep) {
  EXPECT_EQ(verdict(R"({"t": 3, "n": "1"})"), "missing_required_parameter model");
  EXPECT_EQ(with(R"("t": 3, "n": "1")"), "invalid_type n");
  EXPECT_EQ(with(R"("x_n": 1, "n": 1, "t": 3)"), "decimal_above_max_value t");
  EXPECT_EQ(with(R"("t": 3, "above": 0)"), "decimal_above_max_value t");
}

TEST(Fields, CoerceNothing) {
  for (const char* value : {"\"1\"", "true", "[1]", "{}"}) {
    EXPECT_EQ(with(std::string("\"t\": ") + value), "invalid_type t") << value;
    EXPECT_EQ(with(std::string("\"n\": ") + value), "invalid_type n") << value;
  }
  EXPECT_EQ(with("\"n\": 1.5"), "invalid_type n");
  EXPECT_EQ(with("\"n\": 5.0"), "");
  EXPECT_EQ(with("\"n\": 5e0"), "");
  EXPECT_EQ(with("\"store\": 0"), "invalid_type store");
}

TEST(Fields, RangesAreClosed) {
  EXPECT_EQ(with("\"t\": 0"), "");
  EXPECT_EQ(with("\"t\": 2"), "");
  EXPECT_EQ(with("\"t\": 2.0000001"), "decimal_above_max_value t");
  EXPECT_EQ(with("\"t\": -1e-9"), "decimal_below_min_value t");
  EXPECT_EQ(with("\"t\": 1e999"), "decimal_above_max_value t");
  EXPECT_EQ(with("\"t\": -1e999"), "decimal_below_min_value t");
  EXPECT_EQ(with("\"above\": 0"), "decimal_below_min_value above");
  EXPECT_EQ(with("\"n\": 0"), "integer_below_min_value n");
  EXPECT_EQ(with("\"n\": 17"), "integer_above_max_value n");
  EXPECT_EQ(with("\"n\": 1e999"), "integer_above_max_value n");
  EXPECT_EQ(with("\"seed\": -9223372036854775808"), "");
  EXPECT_EQ(with("\"seed\": -9223372036854775809"), "integer_below_min_value seed");
  EXPECT_EQ(with("\"seed\": 9223372036854775807"), "");
  EXPECT_EQ(with("\"seed\": 9223372036854775808"), "integer_above_max_value seed");
  EXPECT_EQ(with("\"bias\": {\"5\": 2}"), "decimal_above_max_value bias.5");
}

TEST(Fields, TakeOneOfSeveralForms) {
  EXPECT_EQ(with(R"("stop": "ab")"), "");
  EXPECT_EQ(with(R"("stop": [])"), "");
  EXPECT_EQ(with(R"("stop": ["a", ""])"), "empty_string stop[1]");
  EXPECT_EQ(with(R"("stop": ["a", "abcde"])"), "string_above_max_length stop[1]");
  EXPECT_EQ(with(R"("stop": ["a", "b", "c"])"), "array_above_max_length stop");
  EXPECT_EQ(with(R"("stop": 5)"), "invalid_type stop");
  EXPECT_EQ(with(R"("prompt": ["a", 5])"), "invalid_type prompt[1]");
  EXPECT_EQ(with(R"("prompt": [5, "a"])"), "invalid_type prompt[1]");
  EXPECT_EQ(with(R"("prompt": [[5], []])"), "empty_array prompt[1]");
  EXPECT_EQ(with(R"("prompt": [[5], [7, 8]])"), "");
}

TEST(Fields, TellWordsThatAreKnownFromThoseThatAreNot) {
  EXPECT_EQ(with(R"("tier": "auto")"), "");
  EXPECT_EQ(with(R"("tier": "flex")"), "unsupported_value tier");
  EXPECT_EQ(with(R"("tier": "Auto")"), "invalid_value tier");
  EXPECT_EQ(with(R"("store": true)"), "unsupported_value store");
  EXPECT_EQ(with(R"("modalities": ["text", "audio"])"), "unsupported_value modalities");
  EXPECT_EQ(with(R"("name": "a b")"), "invalid_value name");
  EXPECT_EQ(with(R"("name": "")"), "invalid_value name");
}

TEST(Fields, LetAWordDecideTheOthers) {
  EXPECT_EQ(with(R"("parts": [{"type": "image", "image": {}}])"), "unsupported_value parts[0].type");
  EXPECT_EQ(with(R"("parts": [{"type": "smell", "smell": 1}])"), "invalid_value parts[0].type");
  EXPECT_EQ(with(R"("parts": [{"text": "a"}])"), "missing_required_parameter parts[0].type");
  EXPECT_EQ(with(R"("parts": [{"type": "text"}])"), "missing_required_parameter parts[0].text");
  EXPECT_EQ(with(R"("parts": [{"type": "call", "id": "a"}])"), "");
  EXPECT_EQ(with(R"("parts": [{"type": "call", "text": "a", "id": "a"}])"),
            "unknown_parameter parts[0].text");
}

TEST(Fields, AnAliasStandsForItsFieldButNotBesideIt) {
  EXPECT_EQ(with(R"("x_n": 17)"), "integer_above_max_value x_n");
  EXPECT_EQ(with(R"("x_n": 1, "n": 1)"), "invalid_value x_n");
  const Json body = read_json(R"({"x_n": 3, "n": null})");
  EXPECT_EQ(Values(body, table()).integer("n"), 3);
  EXPECT_EQ(Values(body, table()).sent_as("n"), "x_n");
}

TEST(Fields, CollectUnknownNamesWhereAWarningIsAskedFor) {
  Check check(true);
  check.body(read_json(R"({"model": "m", "colour": 1, "parts": [{"type": "text", "text": "a", "x": 1}]})"),
             table());
  EXPECT_NO_THROW(check.finish());
  EXPECT_EQ(check.ignored(), (std::vector<std::string>{"colour", "parts[0].x"}));
}
