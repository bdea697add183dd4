// SPDX-License-Identifier: Apache-2.0
#include "server/openai/response_input.h"

#include <fmt/format.h>

#include <set>

namespace juno::server {
namespace {

std::string joined_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    const char* name = part["type"] == "refusal" ? "refusal" : "text";
    out += (i ? "\n" : "") + part[name].get<std::string>();
  }
  return out;
}

class Writer {
 public:
  explicit Writer(Json earlier) : messages_(std::move(earlier)) {
    for (const Json& message : messages_)
      if (const Json* calls = present(message, "tool_calls"))
        for (const Json& call : *calls) calls_.insert(call["id"].get<std::string>());
  }

  void add(const Json& item, size_t index) {
    const Json* type = present(item, "type");
    if (!type || *type == "message") message(item);
    else if (*type == "function_call") call(item);
    else if (*type == "reasoning") reasoning(item);
    else output(item, index);
  }
  Json take() { return std::move(messages_); }

 private:
  void message(const Json& item) { open(item["role"], joined_text(item["content"])); }

  void open(const std::string& role, std::string text) {
    Json message = {{"role", role}, {"content", std::move(text)}};
    if (role == "assistant" && !thought_.empty()) message["reasoning_content"] = std::exchange(thought_, {});
    messages_.push_back(std::move(message));
  }

  // Beside what the assistant said just before.
  void call(const Json& item) {
    if (messages_.empty() || messages_.back()["role"] != "assistant" || !thought_.empty())
      open("assistant", "");
    messages_.back()["tool_calls"].push_back(
        {{"id", item["call_id"]},
         {"type", "function"},
         {"function", {{"name", item["name"]}, {"arguments", item["arguments"]}}}});
    calls_.insert(item["call_id"].get<std::string>());
  }

  void output(const Json& item, size_t index) {
    const std::string id = item["call_id"];
    if (!calls_.count(id)) {
      const std::string param = fmt::format("input[{}].call_id", index);
      throw bad("invalid_value", param, fmt::format("'{}' is '{}', which no earlier item calls", param, id));
    }
    messages_.push_back({{"role", "tool"}, {"content", joined_text(item["output"])}, {"tool_call_id", id}});
  }

  // It belongs to what the assistant says next.
  void reasoning(const Json& item) {
    const Json* content = present(item, "content");
    const Json& texts = content && !content->empty() ? *content : item["summary"];
    for (const Json& text : texts)
      thought_ += (thought_.empty() ? "" : "\n") + text["text"].get<std::string>();
  }

  Json messages_;
  std::set<std::string> calls_;
  std::string thought_;
};

}  // namespace

Json input_messages(Json earlier, const Json& input) {
  if (input.is_string()) {
    earlier.push_back({{"role", "user"}, {"content", input}});
    return earlier;
  }
  Writer writer(std::move(earlier));
  for (size_t i = 0; i < input.size(); ++i) writer.add(input[i], i);
  return writer.take();
}

}  // namespace juno::server
