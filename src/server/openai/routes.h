// SPDX-License-Identifier: Apache-2.0
// The routes of the OpenAI API, and those about a model's text side.
#pragma once
#include "server/app.h"

namespace juno::server {

void chat_completions(App& app, const std::shared_ptr<Exchange>& exchange);
void completions(App& app, const std::shared_ptr<Exchange>& exchange);
void embeddings(App& app, const std::shared_ptr<Exchange>& exchange);
void responses(App& app, const std::shared_ptr<Exchange>& exchange);
void list_models(App& app, const std::shared_ptr<Exchange>& exchange);
void one_model(App& app, const std::shared_ptr<Exchange>& exchange);
void tokenize(App& app, const std::shared_ptr<Exchange>& exchange);
void detokenize(App& app, const std::shared_ptr<Exchange>& exchange);
void apply_template(App& app, const std::shared_ptr<Exchange>& exchange);

}  // namespace juno::server
