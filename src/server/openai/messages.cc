// SPDX-License-Identifier: Apache-2.0
// What messages must be beyond their table, and what templates are given of them.
#include <fmt/format.h>

#include <set>

#include "server/openai/conversation.h"

namespace juno::server {
namespace {

class Messages {
 public:
  explicit Messages(Check& check) : check_(check) {}

  void one(const Json& message, size_t index) {
    if (!message.is_object()) return;
    at_ = fmt::format("messages[{}].", index);
    const Json* role = present(message, "role");
    if (!role || !role->is_string()) return;
    role_ = role->get<std::string>();
    content(message);
    for (const char* name : {"tool_calls", "reasoning_content", "refusal"}) {
      if (role_ != "assistant" && present(message, name))
        fault(Step::kContradictions, "invalid_value", name, "belongs to messages of the assistant");
    }
    call_id(message);
    remember(message);
  }

 private:
  void fault(Step step, std::string_view code, const std::string& name, const std::string& why) {
    check_.fault(step, code, at_ + name, fmt::format("'{}{}' {}", at_, name, why));
  }

  void content(const Json& message) {
    if (present(message, "content")) return;
    if (role_ == "assistant") {
      const Json* calls = present(message, "tool_calls");
      if ((calls && !(calls->is_array() && calls->empty())) || present(message, "refusal")) return;
    }
    if (message.contains("content"))
      fault(Step::kTypes, "invalid_type", "content", "must be a string or an array, not null");
    else fault(Step::kRequired, "missing_required_parameter", "content", "is required");
  }

  void call_id(const Json& message) {
    const Json* id = present(message, "tool_call_id");
    if (role_ != "tool") {
      if (id) fault(Step::kContradictions, "invalid_value", "tool_call_id", "belongs to messages of a tool");
    } else if (!id) {
      fault(Step::kRequired, "missing_required_parameter", "tool_call_id", "is required of a tool");
    } else if (id->is_string() && !calls_.count(id->get<std::string>())) {
      fault(Step::kContradictions, "invalid_value", "tool_call_id",
            fmt::format("is '{}', which no earlier message calls", id->get<std::string>()));
    }
  }

  void remember(const Json& message) {
    const Json* calls = present(message, "tool_calls");
    if (!calls || !calls->is_array()) return;
    for (const Json& call : *calls) {
      const Json* id = call.is_object() ? present(call, "id") : nullptr;
      if (id && id->is_string()) calls_.insert(id->get<std::string>());
    }
  }

  Check& check_;
  std::string at_, role_;
  std::set<std::string> calls_;
};

std::string joined_parts(const Json& parts) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) out += (i ? "\n" : "") + parts[i]["text"].get<std::string>();
  return out;
}

}  // namespace

void check_messages(const Json& body, Check& check) {
  const Json* messages = body.is_object() ? present(body, "messages") : nullptr;
  if (!messages || !messages->is_array()) return;
  Messages all(check);
  for (size_t i = 0; i < messages->size(); ++i) all.one((*messages)[i], i);
}

Json template_messages(const Json& messages) {
  Json out = Json::array();
  for (const Json& message : messages) {
    Json copy = {{"role", message["role"]}, {"content", nullptr}};
    for (const auto& [name, value] : message.items()) {
      if (value.is_null() || name == "annotations" || name == "refusal") continue;
      copy[name] = name == "content" && value.is_array() ? Json(joined_parts(value)) : value;
    }
    if (copy["content"].is_null() && present(message, "refusal")) copy["content"] = message["refusal"];
    if (const Json* calls = present(copy, "tool_calls"); calls && calls->empty()) copy.erase("tool_calls");
    out.push_back(std::move(copy));
  }
  return out;
}

}  // namespace juno::server
