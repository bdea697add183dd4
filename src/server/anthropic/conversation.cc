// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/conversation.h"

#include <fmt/format.h>

#include <set>

#include "server/openai/flat_tools.h"

namespace juno::server {
namespace {

std::string word_at(const Json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

class Turns {
 public:
  explicit Turns(Check& check) : check_(check) {}

  void one(const Json& turn, size_t index) {
    const std::string role = word_at(turn, "role");
    if (role.empty() || !turn.contains("content") || !turn["content"].is_array()) return;
    for (size_t i = 0; i < turn["content"].size(); ++i) {
      at_ = fmt::format("messages[{}].content[{}].", index, i);
      block(turn["content"][i], role);
    }
  }

 private:
  void fault(const std::string& name, const std::string& why) {
    check_.fault(Step::kContradictions, "invalid_value", at_ + name,
                 fmt::format("'{}{}' {}", at_, name, why));
  }

  void block(const Json& block, const std::string& role) {
    const std::string kind = word_at(block, "type");
    if (role == "user" && (kind == "tool_use" || kind == "thinking"))
      fault("type", fmt::format("is '{}', which belongs to the assistant", kind));
    if (role == "assistant" && kind == "tool_result")
      fault("type", "is 'tool_result', which belongs to the user");
    if (kind == "tool_use") calls_.insert(word_at(block, "id"));
    const std::string id = word_at(block, "tool_use_id");
    if (kind == "tool_result" && !id.empty() && !calls_.count(id))
      fault("tool_use_id", fmt::format("is '{}', which no earlier block calls", id));
  }

  Check& check_;
  std::string at_;
  std::set<std::string> calls_;
};

void add_line(std::string& text, const std::string& line) { text += (text.empty() ? "" : "\n") + line; }

// A text, or blocks of texts.
std::string joined_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  for (size_t i = 0; i < content.size(); ++i) out += (i ? "\n" : "") + content[i]["text"].get<std::string>();
  return out;
}

class Writer {
 public:
  void add(const Json& turn) {
    const Json& content = turn["content"];
    if (turn["role"] == "assistant") assistant(content);
    else if (content.is_string()) say("user", content.get<std::string>());
    else user(content);
  }
  // A turn of the role that spoke last belongs to that one's.
  void say(const char* role, std::string text) {
    if (!messages_.empty() && messages_.back()["role"] == role) {
      Json& last = messages_.back()["content"];
      last = last.get<std::string>() + "\n" + text;
    } else {
      messages_.push_back({{"role", role}, {"content", std::move(text)}});
    }
  }
  Json take() { return std::move(messages_); }

 private:
  void user(const Json& blocks) {
    for (const Json& block : blocks) {
      if (block["type"] == "text") {
        say("user", block["text"]);
        continue;
      }
      const auto content = block.find("content");
      std::string text = content == block.end() || content->is_null() ? "" : joined_text(*content);
      if (block.contains("is_error") && block["is_error"] == true) text = "Error: " + text;
      messages_.push_back(
          {{"role", "tool"}, {"content", std::move(text)}, {"tool_call_id", block["tool_use_id"]}});
    }
  }

  void assistant(const Json& content) {
    if (content.is_string()) return say("assistant", content.get<std::string>());
    std::string text, reasoning;
    Json calls = Json::array();
    for (const Json& block : content) {
      if (block["type"] == "text") add_line(text, block["text"]);
      else if (block["type"] == "thinking") add_line(reasoning, block["thinking"]);
      else
        calls.push_back({{"id", block["id"]},
                         {"type", "function"},
                         {"function", {{"name", block["name"]}, {"arguments", to_text(block["input"])}}}});
    }
    say("assistant", std::move(text));
    Json& message = messages_.back();
    if (!reasoning.empty()) message["reasoning_content"] = std::move(reasoning);
    for (Json& call : calls) message["tool_calls"].push_back(std::move(call));
  }

  Json messages_ = Json::array();
};

void set_effort(const Values& values, Conversation& conversation) {
  const Json* config = values.find("output_config");
  if (config && !word_at(*config, "effort").empty()) {
    conversation.effort = word_at(*config, "effort");
    conversation.effort_param = "output_config.effort";
  }
  const Json* thinking = values.find("thinking");
  if (!thinking) return;
  const std::string kind = word_at(*thinking, "type");
  if (conversation.effort && kind != "disabled") return;
  conversation.effort_param = "thinking";
  const auto budget = kind == "enabled" ? (*thinking)["budget_tokens"].get<int64_t>() : 4096;
  conversation.effort = kind == "disabled" ? "none"
                        : budget < 4096    ? "low"
                        : budget < 16384   ? "medium"
                                           : "high";
}

}  // namespace

void check_turns(const Values& values, Check& check) {
  const Json* turns = values.find("messages");
  Turns all(check);
  for (size_t i = 0; turns && turns->is_array() && i < turns->size(); ++i) all.one((*turns)[i], i);
  check_flat_tools(values, "tool", check);
  const Json* thinking = values.find("thinking");
  const Json* most = values.find("max_tokens");
  if (!thinking || !thinking->is_object() || !most || !most->is_number()) return;
  const auto budget = thinking->find("budget_tokens");
  if (budget != thinking->end() && budget->is_number() && *budget >= *most) {
    check.fault(Step::kContradictions, "invalid_value", "thinking.budget_tokens",
                fmt::format("'thinking.budget_tokens' is {}, it must be below max_tokens, which is {}",
                            to_text(*budget), to_text(*most)));
  }
}

Conversation read_turns(const Values& values) {
  Conversation out;
  Writer writer;
  if (const Json* system = values.find("system"))
    if (std::string text = joined_text(*system); !text.empty()) writer.say("system", std::move(text));
  for (const Json& turn : *values.find("messages")) writer.add(turn);
  out.messages = writer.take();
  const Json& last = out.messages.back();
  out.continues = last["role"] == "assistant" && !last.contains("tool_calls");
  set_effort(values, out);
  return out;
}

}  // namespace juno::server
