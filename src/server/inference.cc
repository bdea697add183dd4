// SPDX-License-Identifier: Apache-2.0
// POST /v1/inference, POST /v1/inference/stream
#include "server/inference.h"

#include <fmt/format.h>

#include "server/openai/completion_prompt.h"
#include "server/openai/events.h"
#include "server/openai/request.h"
#include "server/openai/tables.h"

namespace juno::server {
namespace {

using dialect::Piece;

// {finish_reason, and what it has cost}
Json summary(const std::string& model, std::string_view reason, const Usage& usage) {
  return {{"model", model},
          {"finish_reason", reason},
          {"prompt_tokens", usage.prompt},
          {"cached_tokens", usage.cached},
          {"completion_tokens", usage.completion}};
}

// The name of what a piece is in a reply.
const char* name_of(const Piece& piece) {
  return piece.kind == Piece::Kind::kReasoning ? "reasoning" : "text";
}

class InferenceReply : public Voice {
 public:
  InferenceReply(std::shared_ptr<Exchange> exchange, Headers headers, std::string model)
      : exchange_(std::move(exchange)), headers_(std::move(headers)), model_(std::move(model)) {}

  void pieces(int, std::vector<Piece> pieces, std::vector<api::TokenScore>) override {
    for (const Piece& piece : pieces)
      (piece.kind == Piece::Kind::kReasoning ? reasoning_ : text_) += piece.text;
  }
  void choice_end(int, const Ending& ending) override { reason_ = ending.reason; }
  void end(const Usage& usage) override {
    Json body = {{"text", text_}};
    if (!reasoning_.empty()) body["reasoning"] = reasoning_;
    body.update(summary(model_, reason_, usage));
    exchange_->reply({.body = to_text(body), .headers = std::move(headers_)});
  }
  void fail(const Refusal& why) override { exchange_->reply(openai_reply(why)); }

 private:
  const std::shared_ptr<Exchange> exchange_;
  Headers headers_;
  const std::string model_;
  std::string text_, reasoning_, reason_;
};

// Events {"text"} or {"reasoning"}, then one with the rest, which has finish_reason.
class InferenceStream : public Voice {
 public:
  InferenceStream(std::shared_ptr<Exchange> exchange, Headers headers, std::string model)
      : events_(std::move(exchange), std::move(headers)), model_(std::move(model)) {}

  void waiting() override { events_.open(); }
  void pieces(int, std::vector<Piece> pieces, std::vector<api::TokenScore>) override {
    for (const Piece& piece : pieces) events_.send(Json{{name_of(piece), piece.text}});
  }
  void choice_end(int, const Ending& ending) override { reason_ = ending.reason; }
  void end(const Usage& usage) override {
    events_.send(summary(model_, reason_, usage));
    events_.done();
  }
  void fail(const Refusal& why) override { events_.fail(why); }

 private:
  Events events_;
  const std::string model_;
  std::string reason_;
};

void check_inference(const Json& body, const Values& values, Check& check) {
  check_messages(body, check);
  if (values.has("prompt") && values.has("messages"))
    check.fault(Step::kContradictions, "invalid_value", "prompt", "'prompt' cannot stand beside messages");
  if (!values.has("prompt") && !values.has("messages"))
    check.fault(Step::kRequired, "missing_required_parameter", "prompt", "'prompt' or messages is required");
}

// The name that a request without one means.
std::string only_model(App& app) {
  const auto all = app.models.list();
  return all.size() == 1 ? all[0].name : "";
}

template <class Answer>
void run_inference(App& app, const std::shared_ptr<Exchange>& exchange) {
  Body body = read_body(app, *exchange, inference_fields(), check_inference);
  const Values& values = body.values;
  Plan plan;
  plan.service = find_model(app, values.text("model"));
  plan.model = values.text("model").value_or(only_model(app));
  plan.works.push_back(read_work(values, *exchange, *plan.service));
  plan.works[0].max_tokens = values.integer("max_tokens").value_or(-1);
  if (values.has("prompt")) {
    CompletionPrompt prompt = read_prompts(values, "prompt", *plan.service, true)[0];
    check_length(*plan.service, static_cast<int64_t>(prompt.ids.size()), prompt.param);
    plan.works[0].prompt = std::move(prompt.ids);
  } else {
    Conversation conversation;
    conversation.messages = template_messages(*values.find("messages"));
    set_prompt(plan, conversation, nullptr, "messages");
  }
  auto voice = std::make_unique<Answer>(exchange, std::move(body.headers), plan.model);
  Generation::run(app, exchange, std::move(plan), std::move(voice));
}

}  // namespace

const Fields& inference_fields() {
  static const Fields fields =
      all({{optional("model", text(1), "the only model", "a name from GET /v1/models"),
            optional("prompt", text(), "messages",
                     "the text that is continued; texts of control tokens become these"),
            optional("max_tokens", integer(1, kMaxTokens), "what the context leaves", "an upper bound"),
            alias("priority", "x_juno_priority", words({"HIGH", "NORMAL", "LOW"}),
                  "the same as x_juno_priority")},
           [] {
             Fields messages = picked(chat_fields(), {"messages"});
             messages[0].required = false;
             messages[0].fallback = "prompt";
             return messages;
           }(),
           sampling_fields(),
           picked(token_fields(), {"seed", "stop"}),
           picked(identity_fields(), {"session_id", "x_juno_session_id", "cache_salt", "x_juno_priority"})});
  return fields;
}

void inference(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] { run_inference<InferenceReply>(app, exchange); });
}

void inference_stream(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] { run_inference<InferenceStream>(app, exchange); });
}

}  // namespace juno::server
