// SPDX-License-Identifier: Apache-2.0
#include "server/openai/objects.h"

#include <algorithm>

#include "server/openai/request.h"
#include "tokenizer/tokenizer.h"

namespace juno::server {

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.completion},
          {"total_tokens", usage.prompt + usage.completion},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning}}}};
}

double finite(float logprob) {
  constexpr double kLeast = -9999;  // what OpenAI gives for a token that cannot come
  return logprob > kLeast ? static_cast<double>(logprob) : kLeast;
}

std::string token_text(const tokenizer::Tokenizer& tokenizer, int32_t id) {
  return std::string(tokenizer.piece(id));
}

namespace {

Json score_json(const tokenizer::Tokenizer& tokenizer, const api::Scored& scored) {
  const std::string text = token_text(tokenizer, scored.id);
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
  return {{"token", text}, {"logprob", finite(scored.logprob)}, {"bytes", std::move(bytes)}};
}

}  // namespace

Json scores_json(const tokenizer::Tokenizer& tokenizer, const std::vector<api::TokenScore>& scores) {
  Json out = Json::array();
  for (const api::TokenScore& score : scores) {
    Json one = score_json(tokenizer, score);
    one["top_logprobs"] = Json::array();
    for (const api::Scored& other : score.top) one["top_logprobs"].push_back(score_json(tokenizer, other));
    out.push_back(std::move(one));
  }
  return out;
}

bool begins(const dialect::Piece& piece, const std::optional<dialect::Piece::Kind>& open) {
  using Kind = dialect::Piece::Kind;
  return piece.kind == Kind::kCall || (piece.kind != Kind::kArguments && open != piece.kind);
}

void Spoken::add(std::vector<dialect::Piece> pieces, std::vector<api::TokenScore> more) {
  std::ranges::move(more, std::back_inserter(scores));
  for (dialect::Piece& piece : pieces) {
    switch (piece.kind) {
      case dialect::Piece::Kind::kContent:
        content += piece.text;
        break;
      case dialect::Piece::Kind::kReasoning:
        reasoning += piece.text;
        break;
      case dialect::Piece::Kind::kCall:
        calls.push_back({make_call_id(), std::move(piece.text), ""});
        break;
      case dialect::Piece::Kind::kArguments:
        calls.at(static_cast<size_t>(piece.call)).arguments += piece.text;
        break;
    }
  }
}

Json Spoken::calls_json() const {
  Json out = Json::array();
  for (const Call& call : calls) {
    out.push_back({{"id", call.id},
                   {"type", "function"},
                   {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return out;
}

}  // namespace juno::server
