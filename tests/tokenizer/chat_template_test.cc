// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace juno::tokenizer {
namespace {

using nlohmann::ordered_json;

std::string read_file(const std::string& path) {
  std::ifstream in(std::string(JUNO_SOURCE_DIR) + "/tests/data/templates/" + path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// "2025-03-14T15:09:26"
std::tm read_time(const std::string& s) {
  std::tm t{};
  EXPECT_NE(strptime(s.c_str(), "%Y-%m-%dT%H:%M:%S", &t), nullptr);
  return t;
}

std::optional<std::string> text_or_nothing(const ordered_json& row, const char* key) {
  if (!row.contains(key) || row[key].is_null()) return std::nullopt;
  return row[key].get<std::string>();
}

Result<Rendered> render_row(const ChatTemplate& t, const ordered_json& row) {
  ChatInputs in;
  in.messages = &row["messages"];
  in.tools = row["tools"].is_null() ? nullptr : &row["tools"];
  in.arguments = &row["kwargs"];
  in.add_generation_prompt = row["add_generation_prompt"];
  in.continue_final_message = row.value("continue_final_message", false);
  in.bos_token = text_or_nothing(row, "bos_token");
  in.eos_token = text_or_nothing(row, "eos_token");
  in.unk_token = text_or_nothing(row, "unk_token");
  in.now = read_time(row["now"]);
  return t.render(in);
}

void check_row(const ChatTemplate& t, const ordered_json& row) {
  Result<Rendered> r = render_row(t, row);
  if (row.contains("expected")) {
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->text(), row["expected"].get<std::string>());
  } else if (row["error_from"] == "template") {
    ASSERT_FALSE(r) << r->text();
    EXPECT_EQ(r.error().message, row["error"].get<std::string>());
  } else if (row["error_from"] == "SecurityError") {
    EXPECT_TRUE(r) << "append is allowed here: " << r.error().message;
  } else {
    ASSERT_FALSE(r) << r->text();
    EXPECT_EQ(r.error().message.rfind("[tokenizer] model.jinja:", 0), 0u) << r.error().message;
  }
}

TEST(C17, EveryRenderingOfTheReferenceIsEqualByteForByte) {
  ordered_json expected = ordered_json::parse(read_file("expected.json"));
  ASSERT_EQ(expected.size(), 22u);
  for (const auto& [name, rows] : expected.items()) {
    auto t = ChatTemplate::parse(read_file(name), "model.jinja");
    ASSERT_TRUE(t) << name << ": " << t.error().message;
    EXPECT_GE(rows.size(), 20u);
    for (const auto& row : rows) {
      SCOPED_TRACE(name + " / " + row["case"].get<std::string>());
      check_row(*t, row);
    }
  }
}

}  // namespace
}  // namespace juno::tokenizer
