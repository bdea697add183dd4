// SPDX-License-Identifier: Apache-2.0
#include "server/openai/response_voice.h"

#include <algorithm>

#include "server/openai/objects.h"
#include "server/openai/request.h"

namespace juno::server {

using dialect::Piece;

ResponseVoice::ResponseVoice(std::shared_ptr<Exchange> exchange, Headers headers, Head head)
    : exchange_(exchange), headers_(std::move(headers)), head_(std::move(head)) {
  if (head_.stream) events_.emplace(exchange, std::exchange(headers_, {}));
}

void ResponseVoice::waiting() {
  if (events_) begin();
}

void ResponseVoice::pieces(int, std::vector<Piece> pieces, std::vector<api::TokenScore> scores) {
  begin();
  if (pieces.empty()) std::ranges::move(scores, std::back_inserter(scores_));
  for (const Piece& piece : pieces) {
    if (begins(piece, kind_)) open(piece);
    if (piece.kind == Piece::Kind::kCall) continue;
    const bool content = piece.kind == Piece::Kind::kContent;
    add(piece.text, content ? std::exchange(scores, {}) : std::vector<api::TokenScore>());
  }
}

void ResponseVoice::choice_end(int, const Ending& ending) {
  begin();
  if (ending.reason == "length") status_ = "incomplete";
  close(status_.c_str());
}

void ResponseVoice::end(const Usage& usage) {
  Json& response = head_.response;
  response["status"] = status_;
  if (status_ == "incomplete") response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  response["output"] = output_;
  response["usage"] = {{"input_tokens", usage.prompt},
                       {"input_tokens_details", {{"cached_tokens", usage.cached}, {"cache_write_tokens", 0}}},
                       {"output_tokens", usage.completion},
                       {"output_tokens_details", {{"reasoning_tokens", usage.reasoning}}},
                       {"total_tokens", usage.prompt + usage.completion}};
  if (head_.keep) head_.keep(output_);
  if (!events_) return exchange_->reply({.body = to_text(response), .headers = std::move(headers_)});
  send("response." + status_, {{"response", response}});
  events_->finish();
}

void ResponseVoice::fail(const Refusal& why) {
  if (!events_ || !events_->opened()) return exchange_->reply(openai_reply(why));
  head_.response["status"] = "failed";
  head_.response["output"] = output_;
  head_.response["error"] = {{"code", why.status == 429 ? "rate_limit_exceeded" : "server_error"},
                             {"message", why.message}};
  send("response.failed", {{"response", head_.response}});
  exchange_->abort();
}

void ResponseVoice::begin() {
  if (std::exchange(begun_, true)) return;
  send("response.created", {{"response", head_.response}});
  send("response.in_progress", {{"response", head_.response}});
}

void ResponseVoice::open(const Piece& piece) {
  close("completed");
  kind_ = piece.kind;
  if (piece.kind == Piece::Kind::kContent) id_ = make_id("msg_");
  else if (piece.kind == Piece::Kind::kReasoning) id_ = make_id("rs_");
  else id_ = make_id("fc_"), call_id_ = make_call_id(), name_ = piece.text;
  send("response.output_item.added",
       {{"output_index", output_.size()}, {"item", item("in_progress", false)}});
  if (piece.kind != Piece::Kind::kCall) send_here("response.content_part.added", {{"part", part()}}, true);
}

void ResponseVoice::add(const std::string& text, const std::vector<api::TokenScore>& scores) {
  text_ += text;
  scores_.insert(scores_.end(), scores.begin(), scores.end());
  if (!events_) return;
  if (kind_ == Piece::Kind::kContent)
    send_here("response.output_text.delta", {{"delta", text}, {"logprobs", scores_of(scores)}}, true);
  else if (kind_ == Piece::Kind::kReasoning)
    send_here("response.reasoning_text.delta", {{"delta", text}}, true);
  else send_here("response.function_call_arguments.delta", {{"delta", text}}, false);
}

void ResponseVoice::close(const char* status) {
  if (!kind_) return;
  if (kind_ == Piece::Kind::kContent)
    send_here("response.output_text.done", {{"text", text_}, {"logprobs", scores_of(scores_)}}, true);
  else if (kind_ == Piece::Kind::kReasoning)
    send_here("response.reasoning_text.done", {{"text", text_}}, true);
  else send_here("response.function_call_arguments.done", {{"name", name_}, {"arguments", text_}}, false);
  if (kind_ != Piece::Kind::kCall) send_here("response.content_part.done", {{"part", part()}}, true);
  Json whole = item(status, true);
  send("response.output_item.done", {{"output_index", output_.size()}, {"item", whole}});
  output_.push_back(std::move(whole));
  kind_.reset();
  text_.clear(), scores_.clear();
}

Json ResponseVoice::part() const {
  if (kind_ == Piece::Kind::kReasoning) return {{"type", "reasoning_text"}, {"text", text_}};
  return {{"type", "output_text"},
          {"text", text_},
          {"annotations", Json::array()},
          {"logprobs", scores_of(scores_)}};
}

Json ResponseVoice::item(const char* status, bool whole) const {
  const Json content = whole ? Json::array({part()}) : Json::array();
  if (kind_ == Piece::Kind::kContent)
    return {
        {"id", id_}, {"type", "message"}, {"status", status}, {"role", "assistant"}, {"content", content}};
  if (kind_ == Piece::Kind::kReasoning)
    return {{"id", id_},
            {"type", "reasoning"},
            {"summary", Json::array()},
            {"content", content},
            {"status", status}};
  return {{"id", id_},           {"type", "function_call"}, {"status", status},
          {"call_id", call_id_}, {"name", name_},           {"arguments", text_}};
}

Json ResponseVoice::scores_of(const std::vector<api::TokenScore>& scores) const {
  return head_.scored ? scores_json(head_.service->tokenizer(), scores) : Json::array();
}

void ResponseVoice::send(const std::string& type, Json data) {
  if (!events_) return;
  Json event = {{"type", type}, {"sequence_number", sequence_++}};
  event.update(data);
  events_->send(type, event);
}

// Of the open item, or of its only part.
void ResponseVoice::send_here(const std::string& type, Json data, bool in_part) {
  if (!events_) return;
  Json here = {{"item_id", id_}, {"output_index", output_.size()}};
  if (in_part) here["content_index"] = 0;
  here.update(data);
  send(type, std::move(here));
}

}  // namespace juno::server
