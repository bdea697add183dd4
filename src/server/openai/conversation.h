// SPDX-License-Identifier: Apache-2.0
// A conversation, as its route has read it, becomes a prompt by the model's own template.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "api/service.h"
#include "server/fields.h"

namespace juno::server {

struct Conversation {
  Json messages = Json::array();      // as chat completions spell them
  Json tools;                         // likewise, or null
  Json format;                        // a response_format, or null: some templates read it
  Json arguments;                     // further variables, or null
  std::optional<std::string> effort;  // reasoning_effort
  bool opens_turn = true;
  bool continues = false;  // the last message is the assistant's and goes on

  // Names of the fields, for refusals.
  std::string messages_param = "messages", effort_param = "reasoning_effort",
              arguments_param = "chat_template_kwargs";
};

struct Rendering {
  std::string text;
  std::vector<int32_t> ids;
};

// What a table cannot say about body["messages"], such as which roles may hold what.
void check_messages(const Json& body, Check& check);

// body["messages"] as templates take them: parts joined, nulls left out.
Json template_messages(const Json& messages);

// Throws Refusal: template_error with the template's sentence, unsupported_parameter and invalid_value for
// what the template does not read, context_length_exceeded.
Rendering render(const api::Service& service, const Conversation& conversation);

// Throws context_length_exceeded when so many tokens do not fit. A prompt that fills the context is served:
// its reply has no tokens and ends with "length".
void check_length(const api::Service& service, int64_t tokens, const std::string& param);

}  // namespace juno::server
