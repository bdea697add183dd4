// SPDX-License-Identifier: Apache-2.0
// POST /v1/messages, POST /v1/messages/count_tokens
#include "server/anthropic/conversation.h"
#include "server/anthropic/errors.h"
#include "server/anthropic/routes.h"
#include "server/anthropic/tables.h"
#include "server/openai/constraints.h"
#include "server/openai/events.h"
#include "server/openai/flat_tools.h"
#include "server/openai/objects.h"
#include "server/openai/request.h"

namespace juno::server {
namespace {

using dialect::Piece;

struct MessageHead {
  std::string id = make_id("msg_");
  std::string model;
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;

  Json message(Json content, Json stop_reason, Json stop_sequence, Json usage) const {
    return {{"id", id},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model},
            {"content", std::move(content)},
            {"stop_reason", std::move(stop_reason)},
            {"stop_sequence", std::move(stop_sequence)},
            {"usage", std::move(usage)}};
  }
};

// Cached tokens are no input tokens here.
Json usage_object(const Usage& usage) {
  return {{"input_tokens", usage.prompt - usage.cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached},
          {"output_tokens", usage.completion}};
}

// Of a length: max_tokens, or the context's end.
std::string stop_reason(const Ending& ending, const Usage& usage, int64_t max_tokens) {
  if (ending.reason == "tool_calls") return "tool_use";
  if (ending.stop) return "stop_sequence";
  if (ending.reason != "length") return "end_turn";
  return usage.completion < max_tokens ? "model_context_window_exceeded" : "max_tokens";
}

// A block before anything stands in it.
Json empty_block(const Piece& piece) {
  if (piece.kind == Piece::Kind::kContent) return {{"type", "text"}, {"text", ""}};
  if (piece.kind == Piece::Kind::kReasoning)
    return {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
  return {{"type", "tool_use"}, {"id", make_call_id()}, {"name", piece.text}, {"input", Json::object()}};
}

class MessageReply : public Voice {
 public:
  MessageReply(std::shared_ptr<Exchange> exchange, Headers headers, MessageHead head)
      : exchange_(std::move(exchange)), headers_(std::move(headers)), head_(std::move(head)) {}

  void pieces(int, std::vector<Piece> pieces, std::vector<api::TokenScore>) override {
    for (Piece& piece : pieces) {
      if (begins(piece, open_)) {
        close();
        open_ = piece.kind;
        content_.push_back(empty_block(piece));
      }
      if (piece.kind != Piece::Kind::kCall) text_ += piece.text;
    }
  }
  void choice_end(int, const Ending& ending) override {
    ending_ = ending;
    close();
  }
  void end(const Usage& usage) override {
    const Json message = head_.message(std::move(content_), stop_reason(ending_, usage, head_.max_tokens),
                                       ending_.stop ? Json(*ending_.stop) : Json(), usage_object(usage));
    exchange_->reply({.body = to_text(message), .headers = std::move(headers_)});
  }
  void fail(const Refusal& why) override { exchange_->reply(anthropic_reply(why, exchange_->request())); }

 private:
  void close() {
    if (!open_) return;
    Json& block = content_.back();
    const std::string text = std::exchange(text_, {});
    if (*open_ == Piece::Kind::kContent) block["text"] = text;
    else if (*open_ == Piece::Kind::kReasoning) block["thinking"] = text;
    else block["input"] = input_of(text);
    open_.reset();
  }

  // Arguments that broke off, where the stop_reason is max_tokens, leave an empty object.
  static Json input_of(const std::string& text) {
    try {
      Json input = read_json(text);
      if (input.is_object()) return input;
    } catch (const Refusal&) {
    }
    return Json::object();
  }

  const std::shared_ptr<Exchange> exchange_;
  Headers headers_;
  const MessageHead head_;
  Json content_ = Json::array();
  std::optional<Piece::Kind> open_;  // of the last block
  std::string text_;                 // of it
  Ending ending_;
};

class MessageStream : public Voice {
 public:
  MessageStream(std::shared_ptr<Exchange> exchange, Headers headers, MessageHead head)
      : exchange_(exchange), events_(exchange, std::move(headers)), head_(std::move(head)) {}

  void waiting() override { begin(); }
  void pieces(int, std::vector<Piece> pieces, std::vector<api::TokenScore>) override {
    begin();
    for (const Piece& piece : pieces) {
      if (begins(piece, open_)) {
        close();
        open_ = piece.kind;
        send("content_block_start", {{"index", index_}, {"content_block", empty_block(piece)}});
      }
      if (piece.kind != Piece::Kind::kCall)
        send("content_block_delta", {{"index", index_}, {"delta", delta(piece)}});
    }
  }
  void choice_end(int, const Ending& ending) override {
    begin();
    close();
    ending_ = ending;
  }
  void end(const Usage& usage) override {
    send("message_delta", {{"delta",
                            {{"stop_reason", stop_reason(ending_, usage, head_.max_tokens)},
                             {"stop_sequence", ending_.stop ? Json(*ending_.stop) : Json()}}},
                           {"usage", usage_object(usage)}});
    send("message_stop", Json::object());
    events_.finish();
  }
  void fail(const Refusal& why) override {
    if (!events_.opened()) return exchange_->reply(anthropic_reply(why, exchange_->request()));
    events_.send("error", anthropic_error(why, exchange_->request()));
    exchange_->abort();
  }

 private:
  void begin() {
    if (std::exchange(begun_, true)) return;
    const Json usage = usage_object({.prompt = head_.prompt_tokens});
    send("message_start", {{"message", head_.message(Json::array(), nullptr, nullptr, usage)}});
  }
  void close() {
    if (!open_) return;
    send("content_block_stop", {{"index", index_++}});
    open_.reset();
  }
  static Json delta(const Piece& piece) {
    if (piece.kind == Piece::Kind::kContent) return {{"type", "text_delta"}, {"text", piece.text}};
    if (piece.kind == Piece::Kind::kReasoning) return {{"type", "thinking_delta"}, {"thinking", piece.text}};
    return {{"type", "input_json_delta"}, {"partial_json", piece.text}};
  }
  void send(const char* type, const Json& rest) {
    Json data = {{"type", type}};
    data.update(rest);
    events_.send(type, data);
  }

  const std::shared_ptr<Exchange> exchange_;
  Events events_;
  const MessageHead head_;
  bool begun_ = false;
  std::optional<Piece::Kind> open_;  // of the block `index_`
  int index_ = 0;
  Ending ending_;
};

// Tools in the form of chat completions: {"tools"?, "tool_choice"?}.
Json chat_form(const Values& values) {
  Json out = Json::object();
  if (const Json* tools = values.find("tools")) out["tools"] = chat_tools(*tools, "input_schema");
  const Json* choice = values.find("tool_choice");
  if (!choice) return out;
  const std::string kind = (*choice)["type"];
  if (kind == "tool")
    out["tool_choice"] = {{"type", "function"}, {"function", {{"name", (*choice)["name"]}}}};
  else out["tool_choice"] = kind == "any" ? "required" : kind;
  return out;
}

// The schema of output_config.format, or null.
const Json* schema_of(const Values& values) {
  const Json* config = values.find("output_config");
  if (!config || !config->contains("format") || (*config)["format"].is_null()) return nullptr;
  return &(*config)["format"]["schema"];
}

std::unique_ptr<grammar::Automaton> held_by(const Json* schema) {
  if (!schema) return nullptr;
  return std::make_unique<grammar::Automaton>(compile_schema(*schema, "output_config.format.schema"));
}

// All but how the reply is made.
void set_turns(Plan& plan, const Values& values) {
  plan.body = std::make_shared<const Json>(chat_form(values));
  const auto chat = [&](const char* name) -> const Json* {
    const auto at = plan.body->find(name);
    return at == plan.body->end() ? nullptr : &*at;
  };
  const Json* choice = values.find("tool_choice");
  const bool single = choice && choice->contains("disable_parallel_tool_use") &&
                      (*choice)["disable_parallel_tool_use"] == true;
  plan.use = read_tools(chat("tools"), chat("tool_choice"), !single, "tools", "input_schema");
  Conversation conversation = read_turns(values);
  if (const Json* tools = chat("tools")) conversation.tools = *tools;
  const Json* schema = schema_of(values);
  if (schema)
    conversation.format = {{"type", "json_schema"},
                           {"json_schema", {{"name", "reply"}, {"schema", *schema}}}};
  set_prompt(plan, conversation, held_by(schema), "tools");
}

void run_messages(App& app, const std::shared_ptr<Exchange>& exchange) {
  Body body = read_body(app, *exchange, message_fields(),
                        [](const Json&, const Values& values, Check& check) { check_turns(values, check); });
  body.headers.emplace_back("request-id", exchange->request().id);  // what its clients show in reports
  const Values& values = body.values;
  if (const Json* metadata = values.find("metadata"))
    if (const auto user = metadata->find("user_id"); user != metadata->end() && user->is_string())
      exchange->log_user(user->get<std::string>());
  Plan plan;
  plan.model = *values.text("model");
  plan.service = find_model(app, plan.model);
  plan.works.push_back(read_work(values, *exchange, *plan.service));
  api::Work& work = plan.works[0];
  work.max_tokens = *values.integer("max_tokens");
  if (const Json* stop = values.find("stop_sequences")) work.stop = stop->get<std::vector<std::string>>();
  set_turns(plan, values);
  MessageHead head{.model = plan.model,
                   .prompt_tokens = static_cast<int64_t>(work.prompt.size()),
                   .max_tokens = work.max_tokens};
  std::unique_ptr<Voice> voice;
  if (values.flag("stream"))
    voice = std::make_unique<MessageStream>(exchange, std::move(body.headers), std::move(head));
  else voice = std::make_unique<MessageReply>(exchange, std::move(body.headers), std::move(head));
  Generation::run(app, exchange, std::move(plan), std::move(voice));
}

void run_count(App& app, const std::shared_ptr<Exchange>& exchange) {
  Body body = read_body(app, *exchange, count_tokens_fields(),
                        [](const Json&, const Values& values, Check& check) { check_turns(values, check); });
  Plan plan;
  plan.service = find_model(app, body.values.text("model"));
  plan.works.emplace_back();
  set_turns(plan, body.values);
  exchange->reply(
      {.body = to_text({{"input_tokens", plan.works[0].prompt.size()}}), .headers = std::move(body.headers)});
}

}  // namespace

void messages(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer_anthropic(exchange, [&] { run_messages(app, exchange); });
}

void count_tokens(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer_anthropic(exchange, [&] { run_count(app, exchange); });
}

}  // namespace juno::server
