// SPDX-License-Identifier: Apache-2.0
// Conversations of all kinds through each of the 22 templates.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tokenizer/chat_template.h"

namespace juno::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

std::string read_file(const std::string& name) {
  std::ifstream in(JUNO_SOURCE_DIR "/tests/data/templates/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

constexpr std::string_view kMark = "\uE000";  // in no template

// Puts the mark in place of the first character of every text, but for words of the protocol.
void mark(Json& value, const std::string& key = "") {
  if (value.is_structured()) {
    for (auto& [name, item] : value.items()) mark(item, value.is_object() ? name : key);
  } else if (value.is_string() && key != "role" && key != "type") {
    const std::string text = value;
    size_t next = 1;
    while (next < text.size() && (static_cast<uint8_t>(text[next]) & 0xc0) == 0x80) ++next;
    value = std::string(kMark) + (text.empty() ? "" : text.substr(next));
  }
}

ChatInputs inputs_of(const Json& row, const Json& messages, const Json& tools) {
  ChatInputs in;
  in.messages = &messages;
  if (!tools.is_null()) in.tools = &tools;
  in.arguments = &row["kwargs"];
  in.add_generation_prompt = row["add_generation_prompt"];
  in.continue_final_message = row.value("continue_final_message", false);
  in.bos_token = "<s>";
  in.eos_token = "</s>";
  return in;
}

// Content, names, ids, arguments, reasoning and descriptions, of every role, in every template.
TEST(C58, NoTemplateTrustsWhatAConversationSays) {
  int rendered = 0, seen = 0;
  const Json templates = Json::parse(read_file("expected.json"));
  for (const auto& [name, rows] : templates.items()) {
    const auto chat = ChatTemplate::parse(read_file(name), name);
    ASSERT_TRUE(chat) << name;
    for (const auto& row : rows) {
      Json messages = row["messages"], tools = row["tools"];
      mark(messages);
      mark(tools);
      const auto text = chat->render(inputs_of(row, messages, tools));
      if (!text) continue;
      ++rendered;
      for (const Segment& s : text->segments) {
        const bool marked = s.text.find(kMark) != std::string::npos;
        seen += marked;
        EXPECT_FALSE(s.trusted && marked) << name << ": " << s.text;
      }
    }
  }
  EXPECT_GT(rendered, 300);
  EXPECT_GT(seen, rendered);
}

// The text of the last message ends the prompt, whatever the template puts after it.
TEST(Conversations, GoOnWhereTheLastMessageEnds) {
  const Json messages = {{{"role", "user"}, {"content", "Count to five."}},
                         {{"role", "assistant"}, {"content", "One, two,"}}};
  const Json templates = Json::parse(read_file("expected.json"));
  for (const auto& [name, rows] : templates.items()) {
    const auto chat = ChatTemplate::parse(read_file(name), name);
    Json row = {
        {"kwargs", Json::object()}, {"add_generation_prompt", false}, {"continue_final_message", true}};
    const Json tools = name.starts_with("NousResearch") ? Json::array() : Json();
    const auto text = chat->render(inputs_of(row, messages, tools));
    ASSERT_TRUE(text) << name << ": " << text.error().message;
    EXPECT_TRUE(text->text().ends_with("One, two,")) << name;
  }
}

}  // namespace
}  // namespace juno::tokenizer
