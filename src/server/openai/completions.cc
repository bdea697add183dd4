// SPDX-License-Identifier: Apache-2.0
// POST /v1/completions
#include <fmt/format.h>

#include <algorithm>

#include "server/openai/completion_prompt.h"
#include "server/openai/events.h"
#include "server/openai/objects.h"
#include "server/openai/request.h"
#include "server/openai/routes.h"
#include "server/openai/tables.h"
#include "tokenizer/tokenizer.h"

namespace juno::server {
namespace {

// What all replies to one request have in common.
struct CompletionHead {
  std::string id = make_id("cmpl-");
  int64_t created = unix_time();
  std::string model;
  std::shared_ptr<api::Service> service;
  std::optional<int> scored;  // with this many alternatives
  bool echo = false;
  std::vector<CompletionPrompt> prompts;
  int each = 1;  // choices of a prompt

  Json object() const {
    return {{"id", id},       {"object", "text_completion"},         {"created", created},
            {"model", model}, {"system_fingerprint", fingerprint()}, {"choices", Json::array()}};
  }
  const CompletionPrompt& prompt_of(int choice) const { return prompts[static_cast<size_t>(choice / each)]; }
};

int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// The log probabilities of a choice, as this route lists them.
class Scores {
 public:
  Scores(const CompletionHead& head) : head_(head) {}

  // A token of an echoed prompt; the first has no probability.
  void add(int32_t id, const api::TokenScore* score) {
    const auto& tokenizer = head_.service->tokenizer();
    const std::string text = token_text(tokenizer, id);
    tokens_.push_back(text);
    values_.push_back(score ? Json(finite(score->logprob)) : Json());
    offsets_.push_back(offset_);
    offset_ += characters(text);
    if (head_.scored == 0) return;
    Json top = score ? Json::object() : Json();
    if (score)
      for (const api::Scored& other : score->top)
        top[token_text(tokenizer, other.id)] = finite(other.logprob);
    top_.push_back(std::move(top));
  }
  void add(const std::vector<api::TokenScore>& scores) {
    for (const api::TokenScore& score : scores) add(score.id, &score);
  }
  void add_prompt(const std::vector<int32_t>& ids, const std::vector<api::TokenScore>& scores) {
    const size_t missing = ids.size() - std::min(ids.size(), scores.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool known = i > 0 && i >= missing && scores[i - missing].id == ids[i];
      add(ids[i], known ? &scores[i - missing] : nullptr);
    }
  }

  // What has come since the last call; null where nothing was asked for.
  Json take() {
    if (!head_.scored) return nullptr;
    return {{"tokens", std::exchange(tokens_, Json::array())},
            {"token_logprobs", std::exchange(values_, Json::array())},
            {"top_logprobs", head_.scored == 0 ? Json() : std::exchange(top_, Json::array())},
            {"text_offset", std::exchange(offsets_, Json::array())}};
  }

 private:
  const CompletionHead& head_;
  Json tokens_ = Json::array(), values_ = Json::array(), top_ = Json::array(), offsets_ = Json::array();
  int64_t offset_ = 0;
};

// Plain and streamed replies differ in when they send what has come of a choice.
class CompletionReply : public Voice {
 public:
  CompletionReply(std::shared_ptr<Exchange> exchange, Headers headers, CompletionHead head)
      : exchange_(std::move(exchange)), headers_(std::move(headers)), head_(std::move(head)) {
    for (size_t i = 0; i < head_.prompts.size() * static_cast<size_t>(head_.each); ++i)
      choices_.emplace_back(head_);
  }

  void prompt_scores(int work, std::vector<api::TokenScore> scores) override {
    head_.prompts[static_cast<size_t>(work)].scores = std::move(scores);
  }
  void pieces(int choice, std::vector<dialect::Piece> pieces, std::vector<api::TokenScore> scores) override {
    Choice& one = begun(choice);
    for (const dialect::Piece& piece : pieces) one.text += piece.text;
    one.scores.add(scores);
    came(choice, one);
  }
  void choice_end(int choice, const Ending& ending) override {
    Choice& one = begun(choice);
    one.reason = ending.reason;
    came(choice, one);
  }
  void end(const Usage& usage) override {
    Json body = head_.object();
    for (size_t i = 0; i < choices_.size(); ++i) body["choices"].push_back(choice_json(static_cast<int>(i)));
    body["usage"] = usage_json(usage);
    exchange_->reply({.body = to_text(body), .headers = std::move(headers_)});
  }
  void fail(const Refusal& why) override { exchange_->reply(openai_reply(why)); }

 protected:
  struct Choice {
    explicit Choice(const CompletionHead& head) : scores(head) {}
    bool begun = false;
    std::string text;
    Scores scores;
    std::string reason;
  };

  virtual void came(int choice, Choice& one) { (void)choice, (void)one; }

  // What has come of it since the last call.
  Json choice_json(int choice) {
    Choice& one = choices_[static_cast<size_t>(choice)];
    return {{"text", std::exchange(one.text, {})},
            {"index", choice},
            {"logprobs", one.scores.take()},
            {"finish_reason", one.reason.empty() ? Json() : Json(one.reason)}};
  }

  const CompletionHead& head() const { return head_; }

 private:
  Choice& begun(int choice) {
    Choice& one = choices_[static_cast<size_t>(choice)];
    if (std::exchange(one.begun, true) || !head_.echo) return one;
    const CompletionPrompt& prompt = head_.prompt_of(choice);
    one.text = prompt.text;
    if (head_.scored) one.scores.add_prompt(prompt.ids, prompt.scores);
    return one;
  }

  const std::shared_ptr<Exchange> exchange_;
  Headers headers_;
  CompletionHead head_;
  std::vector<Choice> choices_;
};

class CompletionStream : public CompletionReply {
 public:
  CompletionStream(std::shared_ptr<Exchange> exchange, Headers headers, CompletionHead head, bool usage)
      : CompletionReply(exchange, {}, std::move(head)),
        events_(exchange, std::move(headers)),
        usage_(usage) {}

  void waiting() override { events_.open(); }
  void progress(int64_t done, int64_t prompt_tokens) override {
    Json chunk = head().object();
    chunk["x_juno_progress"] = {{"processed", done}, {"total", prompt_tokens}};
    send(std::move(chunk));
  }
  void end(const Usage& usage) override {
    if (usage_) {
      Json chunk = head().object();
      chunk["usage"] = usage_json(usage);
      events_.send(chunk);
    }
    events_.done();
  }
  void fail(const Refusal& why) override { events_.fail(why); }

 protected:
  void came(int choice, Choice&) override {
    Json chunk = head().object();
    chunk["choices"].push_back(choice_json(choice));
    send(std::move(chunk));
  }

 private:
  void send(Json chunk) {
    if (usage_) chunk["usage"] = nullptr;
    events_.send(chunk);
  }

  Events events_;
  const bool usage_;
};

void check_completion(const Json& body, const Values& values, Check& check) {
  check_generation(body, values, "max_tokens", check);
  const bool echo = body.contains("echo") && body["echo"] == true;
  const Json* most = values.find("max_tokens");
  if (most && *most == 0 && !echo) {
    check.fault(Step::kContradictions, "integer_below_min_value", "max_tokens",
                "'max_tokens' is 0, the least value allowed is 1 without echo");
  }
  const Json* best = values.find("best_of");
  const Json* n = values.find("n");
  if (best && best->is_number() && *best != (n ? *n : Json(1)))
    check.fault(Step::kContradictions, "unsupported_value", "best_of",
                "'best_of' takes no other value than n");
}

void run_completion(App& app, const std::shared_ptr<Exchange>& exchange) {
  Body body = read_body(app, *exchange, completion_fields(), check_completion);
  const Values& values = body.values;
  log_user(values, *exchange);
  Plan plan;
  plan.model = *values.text("model");
  plan.service = find_model(app, plan.model);
  api::Work work = read_work(values, *exchange, *plan.service);
  work.max_tokens = values.integer("max_tokens").value_or(16);
  CompletionHead head{
      .model = plan.model, .service = plan.service, .echo = values.flag("echo"), .each = work.choices};
  if (const auto scored = values.integer("logprobs")) head.scored = static_cast<int>(*scored);
  work.logprobs = head.scored;
  work.prompt_logprobs = head.echo && head.scored;
  head.prompts = completion_prompts(values, *plan.service);
  if (auto held = read_constraint(values)) work.grammar = std::move(held);
  for (const CompletionPrompt& prompt : head.prompts)
    check_length(*plan.service, static_cast<int64_t>(prompt.ids.size()), prompt.param);
  for (const CompletionPrompt& prompt : head.prompts) {
    plan.works.push_back(work);
    plan.works.back().prompt = prompt.ids;
  }
  const Json* options = values.find("stream_options");
  const auto option = [&](const char* name) {
    return options && options->contains(name) && (*options)[name] == true;
  };
  plan.wants_progress = option("include_progress");
  std::unique_ptr<Voice> voice;
  if (values.flag("stream"))
    voice = std::make_unique<CompletionStream>(exchange, std::move(body.headers), std::move(head),
                                               option("include_usage"));
  else voice = std::make_unique<CompletionReply>(exchange, std::move(body.headers), std::move(head));
  Generation::run(app, exchange, std::move(plan), std::move(voice));
}

}  // namespace

void completions(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] { run_completion(app, exchange); });
}

}  // namespace juno::server
