// SPDX-License-Identifier: Apache-2.0
#include "server/openai/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace juno::server {
namespace {

using tokenizer::ChatInputs;
using tokenizer::ChatTemplate;
using tokenizer::Rendered;

// A message of the room or the template without the room's name in front.
std::string plain(const std::string& message) {
  return message.starts_with('[') ? message.substr(std::min(message.find("] ") + 2, message.size()))
                                  : message;
}

int depth_of(const Json& value) {
  int deepest = 0;
  if (value.is_structured())
    for (const Json& item : value) deepest = std::max(deepest, 1 + depth_of(item));
  return deepest;
}

// Nothing where the text is no JSON object, or one that a template could not be given.
std::optional<Json> object_in(const std::string& text) {
  constexpr int kDeepest = 64;
  try {
    Json value = read_json(text);
    if (value.is_object() && depth_of(value) <= kDeepest && !has_infinity(value)) return value;
  } catch (const Refusal&) {
  }
  return {};
}

class Renderer {
 public:
  Renderer(const api::Service& service, const Conversation& conversation)
      : service_(service),
        conversation_(conversation),
        messages_(conversation.messages),
        tools_(conversation.tools) {
    const ChatTemplate* found = service.chat_template();
    if (!found) {
      throw bad("template_error", conversation.messages_param,
                "this model has no chat template" +
                    (service.chat_fault() ? ": " + plain(service.chat_fault()->message) : ""));
    }
    template_ = found;
  }

  Rendered run() {
    set_arguments();
    set_roles();
    set_call_arguments();
    set_default("parameters", {{"type", "object"}, {"properties", Json::object()}});
    auto rendered = try_render(messages_);
    // Some templates count on a description; others would write an empty one.
    if (!rendered && set_default("description", "")) rendered = try_render(messages_);
    if (!rendered) throw bad("template_error", conversation_.messages_param, plain(rendered.error().message));
    refuse_unread_names(rendered->text());
    return *rendered;
  }

 private:
  Result<Rendered> try_render(const Json& messages, bool plainly = false) const {
    const auto text_of = [&](std::optional<int32_t> id) {
      return id ? std::optional(std::string(service_.tokenizer().piece(*id))) : std::nullopt;
    };
    const auto& special = service_.tokenizer().special();
    ChatInputs inputs{.messages = &messages,
                      .arguments = &arguments_,
                      .add_generation_prompt = conversation_.opens_turn && !conversation_.continues,
                      .bos_token = text_of(special.bos),
                      .eos_token = text_of(special.eos),
                      .unk_token = text_of(special.unk),
                      .pad_token = text_of(special.pad)};
    if (!tools_.is_null()) inputs.tools = &tools_;
    inputs.continue_final_message = conversation_.continues && !plainly;
    return template_->render(inputs);
  }

  // Whether a tool had none.
  bool set_default(const char* name, const Json& value) {
    bool any = false;
    for (Json& tool : tools_) {
      Json& function = tool["function"];
      if (function.contains(name) && !function[name].is_null()) continue;
      function[name] = value;
      any = true;
    }
    return any;
  }

  // The client's variables, those that stand for reasoning_effort, and the format.
  void set_arguments() {
    static constexpr std::array kOurs = {"messages",  "tools",     "documents", "add_generation_prompt",
                                         "bos_token", "eos_token", "unk_token", "pad_token"};
    if (conversation_.arguments.is_object()) {
      for (const auto& [name, value] : conversation_.arguments.items()) {
        const bool ours = std::ranges::find(kOurs, name) != kOurs.end();
        if (ours || !template_->reads(name)) {
          throw bad("invalid_value", conversation_.arguments_param,
                    fmt::format("the model's template {} a variable '{}'",
                                ours ? "takes from nobody else" : "never reads", name));
        }
        arguments_[name] = value;
      }
    }
    if (!conversation_.format.is_null()) arguments_["response_format"] = conversation_.format;
    if (conversation_.effort) set_effort(*conversation_.effort);
  }

  void set_effort(const std::string& effort) {
    bool read = false;
    for (const char* name : {"enable_thinking", "thinking"}) {
      if (!template_->reads(name)) continue;
      read = true;
      if (!arguments_.contains(name)) arguments_[name] = effort != "none";
    }
    if (template_->reads("reasoning_effort")) {
      read = true;
      if (!arguments_.contains("reasoning_effort")) arguments_["reasoning_effort"] = effort;
    }
    if (!read && effort != "none") {
      throw bad("unsupported_parameter", conversation_.effort_param,
                fmt::format("'{}' is not supported: the model's template knows no such setting",
                            conversation_.effort_param));
    }
  }

  void set_roles() {
    if (template_->source().find("developer") != std::string_view::npos) return;
    for (Json& message : messages_)
      if (message["role"] == "developer") message["role"] = "system";
  }

  // Some templates write arguments as they are given, others expect an object and write it as JSON.
  void set_call_arguments() {
    const auto calls = [](Json& message) { return message.contains("tool_calls"); };
    if (std::ranges::none_of(messages_, calls) || takes_text_arguments()) return;
    for (Json& message : messages_) {
      if (!calls(message)) continue;
      for (Json& call : message["tool_calls"]) {
        Json& arguments = call["function"]["arguments"];
        if (auto parsed = object_in(arguments.get_ref<const std::string&>())) arguments = std::move(*parsed);
      }
    }
  }

  bool takes_text_arguments() const {
    const std::string arguments = R"({"juno_probe": "x"})";
    const Json call = {
        {"id", "call00001"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}};
    const Json probe = {{{"role", "user"}, {"content", "x"}},
                        {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}}};
    const auto rendered = try_render(probe, true);
    return rendered && rendered->text().find(arguments) != std::string::npos;
  }

  // A name that changes nothing in the prompt is not read.
  void refuse_unread_names(const std::string& text) const {
    for (const char* role : {"system", "developer", "user", "assistant", "tool"}) {
      Json without = messages_;
      std::optional<size_t> first;
      for (size_t i = 0; i < without.size(); ++i) {
        if (conversation_.messages[i]["role"] != role || !without[i].contains("name")) continue;
        if (!first) first = i;
        without[i].erase("name");
      }
      if (!first) continue;
      const auto rendered = try_render(without);
      if (rendered && rendered->text() == text) {
        throw bad("unsupported_parameter", fmt::format("{}[{}].name", conversation_.messages_param, *first),
                  fmt::format("the model's template reads no name of a message of role {}", role));
      }
    }
  }

  const api::Service& service_;
  const Conversation& conversation_;
  const ChatTemplate* template_ = nullptr;
  Json messages_, tools_;
  Json arguments_ = Json::object();
};

}  // namespace

Rendering render(const api::Service& service, const Conversation& conversation) {
  const Rendered rendered = Renderer(service, conversation).run();
  Rendering out{rendered.text(), service.ids(rendered)};
  if (out.ids.empty())
    throw bad("template_error", conversation.messages_param, "the model's template gives an empty prompt");
  check_length(service, static_cast<int64_t>(out.ids.size()), conversation.messages_param);
  return out;
}

void check_length(const api::Service& service, int64_t tokens, const std::string& param) {
  const int64_t limit = service.info().context;
  if (tokens <= limit) return;
  Refusal why = bad("context_length_exceeded", param,
                    fmt::format("the prompt has {} tokens, the context takes {}", tokens, limit));
  why.headers = {{"x-juno-prompt-tokens", std::to_string(tokens)},
                 {"x-juno-context-length", std::to_string(limit)}};
  throw why;
}

}  // namespace juno::server
