// SPDX-License-Identifier: Apache-2.0
// POST /v1/chat/completions
#include <fmt/format.h>

#include "server/openai/events.h"
#include "server/openai/objects.h"
#include "server/openai/request.h"
#include "server/openai/routes.h"
#include "server/openai/tables.h"

namespace juno::server {
namespace {

using dialect::Piece;

// What all replies to one request have in common.
struct ChatHead {
  std::string id = make_id("chatcmpl-");
  int64_t created = unix_time();
  std::string model;
  std::shared_ptr<api::Service> service;
  bool scored = false;

  Json object(const char* kind) const {
    return {{"id", id},
            {"object", kind},
            {"created", created},
            {"model", model},
            {"system_fingerprint", fingerprint()},
            {"service_tier", "default"},
            {"choices", Json::array()}};
  }
  Json logprobs(const std::vector<api::TokenScore>& scores) const {
    if (!scored) return nullptr;
    return {{"content", scores_json(service->tokenizer(), scores)}, {"refusal", nullptr}};
  }
};

class ChatReply : public Voice {
 public:
  ChatReply(std::shared_ptr<Exchange> exchange, Headers headers, ChatHead head, int choices)
      : exchange_(std::move(exchange)), headers_(std::move(headers)), head_(std::move(head)) {
    choices_.resize(static_cast<size_t>(choices));
  }

  void pieces(int choice, std::vector<Piece> pieces, std::vector<api::TokenScore> scores) override {
    choices_[static_cast<size_t>(choice)].add(std::move(pieces), std::move(scores));
  }
  void choice_end(int choice, const Ending& ending) override {
    choices_[static_cast<size_t>(choice)].reason = ending.reason;
  }
  void end(const Usage& usage) override {
    Json body = head_.object("chat.completion");
    for (size_t i = 0; i < choices_.size(); ++i) {
      const Spoken& spoken = choices_[i];
      Json message = {{"role", "assistant"}, {"content", spoken.content}, {"refusal", nullptr}};
      if (!spoken.calls.empty()) {
        message["tool_calls"] = spoken.calls_json();
        if (spoken.content.empty()) message["content"] = nullptr;
      }
      if (!spoken.reasoning.empty()) message["reasoning_content"] = spoken.reasoning;
      body["choices"].push_back({{"index", i},
                                 {"message", std::move(message)},
                                 {"logprobs", head_.logprobs(spoken.scores)},
                                 {"finish_reason", spoken.reason}});
    }
    body["usage"] = usage_json(usage);
    exchange_->reply({.body = to_text(body), .headers = std::move(headers_)});
  }
  void fail(const Refusal& why) override { exchange_->reply(openai_reply(why)); }

 private:
  const std::shared_ptr<Exchange> exchange_;
  Headers headers_;
  const ChatHead head_;
  std::vector<Spoken> choices_;
};

class ChatStream : public Voice {
 public:
  ChatStream(std::shared_ptr<Exchange> exchange, Headers headers, ChatHead head, int choices, bool usage)
      : events_(std::move(exchange), std::move(headers)), head_(std::move(head)), usage_(usage) {
    begun_.resize(static_cast<size_t>(choices));
  }

  void waiting() override { events_.open(); }
  void progress(int64_t done, int64_t prompt_tokens) override {
    Json chunk = head_.object("chat.completion.chunk");
    chunk["x_juno_progress"] = {{"processed", done}, {"total", prompt_tokens}};
    if (usage_) chunk["usage"] = nullptr;
    events_.send(chunk);
  }
  void pieces(int choice, std::vector<Piece> pieces, std::vector<api::TokenScore> scores) override {
    begin(choice);
    if (pieces.empty()) send(choice, {{"content", ""}}, scores);
    for (Piece& piece : pieces) {
      const bool content = piece.kind == Piece::Kind::kContent;
      send(choice, delta(piece), content ? std::exchange(scores, {}) : std::vector<api::TokenScore>());
    }
  }
  void choice_end(int choice, const Ending& ending) override {
    begin(choice);
    send(choice, Json::object(), {}, ending.reason);
  }
  void end(const Usage& usage) override {
    if (usage_) {
      Json chunk = head_.object("chat.completion.chunk");
      chunk["usage"] = usage_json(usage);
      events_.send(chunk);
    }
    events_.done();
  }
  void fail(const Refusal& why) override { events_.fail(why); }

 private:
  void begin(int choice) {
    if (begun_[static_cast<size_t>(choice)]) return;
    begun_[static_cast<size_t>(choice)] = true;
    send(choice, {{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}}, {});
  }

  static Json delta(const Piece& piece) {
    if (piece.kind == Piece::Kind::kContent) return {{"content", piece.text}};
    if (piece.kind == Piece::Kind::kReasoning) return {{"reasoning_content", piece.text}};
    Json call = {{"index", piece.call}};
    if (piece.kind == Piece::Kind::kCall) {
      call["id"] = make_call_id();
      call["type"] = "function";
      call["function"] = {{"name", piece.text}, {"arguments", ""}};
    } else {
      call["function"] = {{"arguments", piece.text}};
    }
    return {{"tool_calls", Json::array({std::move(call)})}};
  }

  void send(int choice, Json delta, const std::vector<api::TokenScore>& scores,
            std::string_view reason = {}) {
    Json chunk = head_.object("chat.completion.chunk");
    chunk["choices"].push_back({{"index", choice},
                                {"delta", std::move(delta)},
                                {"logprobs", scores.empty() ? Json() : head_.logprobs(scores)},
                                {"finish_reason", reason.empty() ? Json() : Json(reason)}});
    if (usage_) chunk["usage"] = nullptr;
    events_.send(chunk);
  }

  Events events_;
  const ChatHead head_;
  const bool usage_;
  std::vector<bool> begun_;
};

void check_chat(const Json& body, const Values& values, Check& check) {
  check_messages(body, check);
  check_generation(body, values, "max_completion_tokens", check);
  check_tools(values, check);
  const auto is_true = [&](const char* name) { return body.contains(name) && body[name] == true; };
  const Json* top = values.find("top_logprobs");
  if (top && *top != 0 && !is_true("logprobs"))
    check.fault(Step::kContradictions, "invalid_value", "top_logprobs",
                "'top_logprobs' needs logprobs to be true");
  const Json* messages = values.find("messages");
  if (!is_true("continue_final_message") || !messages || !messages->is_array() || messages->empty()) return;
  const Json& last = messages->back();
  if (last.is_object() && last.contains("role") && last["role"] != "assistant") {
    check.fault(Step::kContradictions, "invalid_value", "continue_final_message",
                "'continue_final_message' needs a last message of the assistant");
  }
}

Conversation conversation_of(const Values& values) {
  Conversation out;
  out.messages = template_messages(*values.find("messages"));
  if (const Json* tools = values.find("tools")) out.tools = *tools;
  if (const Json* format = values.find("response_format"); format && (*format)["type"] != "text")
    out.format = *format;
  if (const Json* arguments = values.find("chat_template_kwargs")) out.arguments = *arguments;
  out.effort = values.text("reasoning_effort");
  out.continues = values.flag("continue_final_message");
  out.opens_turn = values.flag("add_generation_prompt", true);
  return out;
}

bool stream_option(const Values& values, const char* name) {
  const Json* options = values.find("stream_options");
  return options && options->contains(name) && (*options)[name] == true;
}

void run_chat(App& app, const std::shared_ptr<Exchange>& exchange) {
  Body body = read_body(app, *exchange, chat_fields(), check_chat);
  const Values& values = body.values;
  log_user(values, *exchange);
  Plan plan;
  plan.model = *values.text("model");
  plan.service = find_model(app, plan.model);
  plan.body = body.json;
  plan.works.push_back(read_work(values, *exchange, *plan.service));
  api::Work& work = plan.works[0];
  work.max_tokens = values.integer("max_completion_tokens").value_or(-1);
  if (values.flag("logprobs")) work.logprobs = static_cast<int>(values.integer("top_logprobs").value_or(0));
  auto held = read_constraint(values);
  plan.use = read_tools(values.find("tools"), values.find("tool_choice"),
                        values.flag("parallel_tool_calls", true), "tools");
  set_prompt(plan, conversation_of(values), std::move(held), "tools");
  plan.wants_progress = stream_option(values, "include_progress");

  ChatHead head{.model = plan.model, .service = plan.service, .scored = values.flag("logprobs")};
  const int choices = plan.choices();
  std::unique_ptr<Voice> voice;
  if (values.flag("stream"))
    voice = std::make_unique<ChatStream>(exchange, std::move(body.headers), std::move(head), choices,
                                         stream_option(values, "include_usage"));
  else voice = std::make_unique<ChatReply>(exchange, std::move(body.headers), std::move(head), choices);
  Generation::run(app, exchange, std::move(plan), std::move(voice));
}

void run_apply_template(App& app, const std::shared_ptr<Exchange>& exchange) {
  const Body body = read_body(app, *exchange, apply_template_fields(), check_chat);
  const auto service = find_model(app, body.values.text("model"));
  const Rendering rendering = render(*service, conversation_of(body.values));
  exchange->reply({.body = to_text({{"prompt", rendering.text}, {"prompt_tokens", rendering.ids.size()}}),
                   .headers = body.headers});
}

}  // namespace

void chat_completions(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] { run_chat(app, exchange); });
}

void apply_template(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] { run_apply_template(app, exchange); });
}

}  // namespace juno::server
