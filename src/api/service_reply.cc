// SPDX-License-Identifier: Apache-2.0
#include "api/service_reply.h"

#include <utility>

namespace juno::api {

ReplyPieces::ReplyPieces(const tokenizer::Tokenizer& tokenizer, int choice, const Work& work)
    : text_(tokenizer, work.stop, {}, work.keep_control),
      choice_(choice),
      scored_(work.logprobs.has_value()) {}

std::optional<Delta> ReplyPieces::push(TokenScore token) {
  const int32_t id = token.id;
  waiting_.push_back({std::move(token), text_.decoded(), {}});
  text_.push(id);
  if (text_.whole()) {
    for (auto w = waiting_.rbegin(); w != waiting_.rend() && !w->end; ++w) w->end = text_.decoded();
  }
  return collect(false);
}

std::optional<Delta> ReplyPieces::finish() {
  text_.finish();
  return collect(true);
}

std::optional<Delta> ReplyPieces::collect(bool last) {
  const size_t certain = text_.text().size();
  if (certain == sent_ && (!last || waiting_.empty())) return std::nullopt;
  Delta delta{.choice = choice_, .text = text_.text().substr(sent_), .ids = {}, .scores = {}};
  sent_ = certain;
  for (; !waiting_.empty(); waiting_.pop_front()) {
    Waiting& first = waiting_.front();
    const bool cut = text_.stopped() && first.begin >= certain;
    if (!last && (!first.end || *first.end > certain)) break;
    if (cut) continue;
    delta.ids.push_back(first.token.id);
    if (scored_) delta.scores.push_back(std::move(first.token));
  }
  if (delta.text.empty() && delta.ids.empty()) return std::nullopt;
  return delta;
}

}  // namespace juno::api
