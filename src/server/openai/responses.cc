// SPDX-License-Identifier: Apache-2.0
// POST /v1/responses
#include <fmt/format.h>

#include "server/openai/constraints.h"
#include "server/openai/flat_tools.h"
#include "server/openai/request.h"
#include "server/openai/response_input.h"
#include "server/openai/response_voice.h"
#include "server/openai/routes.h"
#include "server/openai/tables.h"

namespace juno::server {
namespace {

bool is_true(const Json& body, const char* name) { return body.contains(name) && body[name] == true; }

bool asks_for_scores(const Values& values) {
  const Json* include = values.find("include");
  return include && include->is_array() && !include->empty();
}

void check_response(const App& app, const Json& body, const Values& values, Check& check) {
  check_flat_tools(values, "function", check);
  const auto fault = [&](Step step, std::string_view code, const char* name, std::string_view why) {
    check.fault(step, code, name, fmt::format("'{}' {}", name, why));
  };
  if (is_true(body, "store") && !app.store_responses)
    fault(Step::kRanges, "unsupported_value", "store", "needs a server with --store-responses");
  if (values.has("previous_response_id") && !app.store_responses) {
    fault(Step::kTypes, "unsupported_parameter", "previous_response_id",
          "is not supported: this server stores no responses (--store-responses)");
  }
  if (values.has("stream_options") && !is_true(body, "stream"))
    fault(Step::kContradictions, "invalid_value", "stream_options",
          "asks for something of a stream: stream must be true");
  const Json* top = values.find("top_logprobs");
  if (top && *top != 0 && !asks_for_scores(values))
    fault(Step::kContradictions, "invalid_value", "top_logprobs",
          "needs include to name message.output_text.logprobs");
  if (!values.has("tools") && values.has("parallel_tool_calls"))
    fault(Step::kContradictions, "invalid_value", "parallel_tool_calls", "needs tools");
}

// What outlives the request of its tools, in the form of chat completions: {"tools"?, "tool_choice"?}.
Json chat_form(const Values& values) {
  Json out = Json::object();
  if (const Json* tools = values.find("tools")) out["tools"] = chat_tools(*tools, "parameters");
  const Json* choice = values.find("tool_choice");
  if (choice && choice->is_object())
    out["tool_choice"] = {{"type", "function"}, {"function", {{"name", (*choice)["name"]}}}};
  else if (choice) out["tool_choice"] = *choice;
  return out;
}

// A field of an object that may be absent; null where one of them is.
const Json* inside(const Json* object, const char* name) {
  if (!object) return nullptr;
  const auto at = object->find(name);
  return at == object->end() || at->is_null() ? nullptr : &*at;
}

std::unique_ptr<grammar::Automaton> held_by(const Json* format) {
  if (!format || (*format)["type"] == "text") return nullptr;
  const bool any = (*format)["type"] == "json_object";
  return std::make_unique<grammar::Automaton>(
      any ? compile_schema({{"type", "object"}}, "text.format")
          : compile_schema((*format)["schema"], "text.format.schema"));
}

// text.format as chat completions say it, for templates that read it.
Json chat_format(const Json* format) {
  if (!format || (*format)["type"] == "text") return nullptr;
  if ((*format)["type"] == "json_object") return *format;
  Json schema = *format;
  schema.erase("type");
  return {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

Json earlier_messages(App& app, const Exchange& exchange, const Values& values) {
  const auto id = values.text("previous_response_id");
  if (!id) return Json::array();
  const auto found = app.responses.find(exchange.request().tenant, *id);
  if (!found) {
    throw bad("previous_response_not_found", "previous_response_id",
              fmt::format("there is no stored response '{}'", *id));
  }
  return *found;
}

Json or_null(const Json* value, Json fallback = nullptr) { return value ? *value : std::move(fallback); }

// The response before it runs. Fields that the request leaves out have the values that hold then.
Json first_response(const Values& values, const std::string& id, bool stored) {
  const Json* format = inside(values.find("text"), "format");
  const Json* effort = inside(values.find("reasoning"), "effort");
  const auto asked = [&](const char* name, Json fallback) {
    return or_null(values.find(name), std::move(fallback));
  };
  return {{"id", id},
          {"object", "response"},
          {"created_at", unix_time()},
          {"status", "in_progress"},
          {"background", false},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"instructions", asked("instructions", nullptr)},
          {"max_output_tokens", asked("max_output_tokens", nullptr)},
          {"max_tool_calls", nullptr},
          {"metadata", asked("metadata", Json::object())},
          {"model", *values.text("model")},
          {"output", Json::array()},
          {"parallel_tool_calls", values.flag("parallel_tool_calls", true)},
          {"previous_response_id", asked("previous_response_id", nullptr)},
          {"prompt_cache_key", asked("prompt_cache_key", nullptr)},
          {"reasoning", {{"effort", or_null(effort)}, {"summary", nullptr}}},
          {"safety_identifier", asked("safety_identifier", nullptr)},
          {"service_tier", "default"},
          {"store", stored},
          {"temperature", asked("temperature", 1.0)},
          {"text", {{"format", or_null(format, {{"type", "text"}})}, {"verbosity", "medium"}}},
          {"tool_choice", asked("tool_choice", "auto")},
          {"tools", asked("tools", Json::array())},
          {"top_logprobs", asked("top_logprobs", 0)},
          {"top_p", asked("top_p", 1.0)},
          {"truncation", "disabled"},
          {"usage", nullptr},
          {"user", asked("user", nullptr)}};
}

void set_conversation(Plan& plan, const Values& values, Json messages) {
  plan.body = std::make_shared<const Json>(chat_form(values));
  const Json* tools = inside(plan.body.get(), "tools");
  plan.use = read_tools(tools, inside(plan.body.get(), "tool_choice"),
                        values.flag("parallel_tool_calls", true), "tools", "parameters");
  const Json* format = inside(values.find("text"), "format");
  Conversation conversation;
  conversation.messages_param = "input";
  conversation.effort_param = "reasoning.effort";
  if (const auto text = values.text("instructions"))
    conversation.messages.push_back({{"role", "system"}, {"content", *text}});
  for (Json& message : messages) conversation.messages.push_back(std::move(message));
  if (tools) conversation.tools = *tools;
  conversation.format = chat_format(format);
  if (const Json* effort = inside(values.find("reasoning"), "effort"))
    conversation.effort = effort->get<std::string>();
  set_prompt(plan, conversation, held_by(format), "tools");
}

void run_responses(App& app, const std::shared_ptr<Exchange>& exchange) {
  Body body =
      read_body(app, *exchange, response_fields(), [&](const Json& json, const Values& values, Check& check) {
        check_response(app, json, values, check);
      });
  const Values& values = body.values;
  log_user(values, *exchange);
  Plan plan;
  plan.model = *values.text("model");
  plan.service = find_model(app, plan.model);
  plan.works.push_back(read_work(values, *exchange, *plan.service));
  plan.works[0].max_tokens = values.integer("max_output_tokens").value_or(-1);
  const bool scored = asks_for_scores(values);
  if (scored) plan.works[0].logprobs = static_cast<int>(values.integer("top_logprobs").value_or(0));
  const Json messages = input_messages(earlier_messages(app, *exchange, values), *values.find("input"));
  set_conversation(plan, values, messages);

  const bool stored = app.store_responses && values.flag("store", true);
  const std::string id = make_id("resp_");
  ResponseVoice::Head head{.response = first_response(values, id, stored),
                           .service = plan.service,
                           .scored = scored,
                           .stream = values.flag("stream")};
  if (stored) {
    head.keep = [&app, tenant = exchange->request().tenant, id, messages](const Json& output) {
      app.responses.keep(tenant, id, input_messages(messages, output));
    };
  }
  auto voice = std::make_unique<ResponseVoice>(exchange, std::move(body.headers), std::move(head));
  Generation::run(app, exchange, std::move(plan), std::move(voice));
}

}  // namespace

void responses(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] { run_responses(app, exchange); });
}

}  // namespace juno::server
