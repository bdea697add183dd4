// SPDX-License-Identifier: Apache-2.0
// The prompts of /v1/completions and the inputs of /v1/embeddings: texts or token ids, one or several.
#pragma once
#include <string>
#include <vector>

#include "api/service.h"
#include "server/fields.h"

namespace juno::server {

struct CompletionPrompt {
  std::string param;  // "prompt", or "prompt[2]" of several
  std::string text;   // as an echo says it
  std::vector<int32_t> ids;
  std::vector<api::TokenScore> scores;  // of ids, once they are known
};

// Field `name` of a checked body. Throws invalid_value for an id outside the vocabulary and empty_string for
// a text that gives no token.
std::vector<CompletionPrompt> read_prompts(const Values& values, const char* name,
                                           const api::Service& service, bool parse_special);

// Those of /v1/completions, around which a suffix may stand: unsupported_parameter for a model that has no
// tokens for filling in.
std::vector<CompletionPrompt> completion_prompts(const Values& values, const api::Service& service);

}  // namespace juno::server
