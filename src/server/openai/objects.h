// SPDX-License-Identifier: Apache-2.0
// Pieces of replies that several routes have.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "server/json.h"
#include "server/openai/generation.h"

namespace juno::tokenizer {
class Tokenizer;
}

namespace juno::server {

// {prompt_tokens, completion_tokens, total_tokens, …}
Json usage_json(const Usage& usage);

// What a log probability is where none is finite.
double finite(float logprob);

// The token's own bytes as text.
std::string token_text(const tokenizer::Tokenizer& tokenizer, int32_t id);

// As chat completions list them: [{token, logprob, bytes, top_logprobs}].
Json scores_json(const tokenizer::Tokenizer& tokenizer, const std::vector<api::TokenScore>& scores);

// Whether a piece begins an item of its own after pieces of the kind `open`, if any.
bool begins(const dialect::Piece& piece, const std::optional<dialect::Piece::Kind>& open);

// A call as it grows from pieces.
struct Call {
  std::string id, name, arguments;
};

// One choice as it grows from pieces.
struct Spoken {
  std::string content, reasoning;
  std::vector<Call> calls;
  std::vector<api::TokenScore> scores;
  std::string reason;  // why it ended

  void add(std::vector<dialect::Piece> pieces, std::vector<api::TokenScore> more);
  Json calls_json() const;  // as chat completions list them
};

}  // namespace juno::server
