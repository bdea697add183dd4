// SPDX-License-Identifier: Apache-2.0
// The fields of the OpenAI routes, as data (server/fields.h).
#pragma once
#include "server/fields.h"

namespace juno::server {

inline constexpr int64_t kMaxTokens = 2147483647;

// Groups that several routes have.
const Fields& model_fields();     // model
const Fields& identity_fields();  // who asks, what it shares, how urgent it is
const Fields& sampling_fields();  // temperature, top_p, top_k, min_p
const Fields& token_fields();     // penalties, biases, seed, n, lengths, stop, grammars
const Fields& adapter_fields();   // names that other servers use for adapters
Forms schema_forms();             // a JSON Schema
Forms stream_options_forms();
Fields tool_function_fields();  // name, description, parameters, strict
std::vector<std::string> other_tool_kinds();
Fields all(std::initializer_list<Fields> groups);
Fields picked(const Fields& fields, std::initializer_list<std::string_view> names);

const Fields& chat_fields();
const Fields& completion_fields();
const Fields& embedding_fields();
const Fields& response_fields();
const Fields& tokenize_fields();
const Fields& detokenize_fields();
const Fields& apply_template_fields();

}  // namespace juno::server
