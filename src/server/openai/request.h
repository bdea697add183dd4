// SPDX-License-Identifier: Apache-2.0
// What the routes that generate read alike: who asks, which model, how it samples, what the reply is held to.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/models.h"
#include "dialect/dialect.h"
#include "server/app.h"
#include "server/fields.h"
#include "server/openai/conversation.h"
#include "server/openai/generation.h"

namespace juno::server {

// Runs a route's body; what it throws becomes the reply, so that nothing is thrown out of a handler.
void answer(const std::shared_ptr<Exchange>& exchange, const std::function<void()>& body);

// The body of a request, held against a route's table and checked further by `more`, which may be empty.
struct Body {
  std::shared_ptr<const Json> json;
  Values values;
  Headers headers;  // x-juno-ignored-fields, for the reply
};
Body read_body(App& app, const Exchange& exchange, const Fields& fields,
               const std::function<void(const Json&, const Values&, Check&)>& more = {});

// Of stream_options, min_tokens, ignore_eos, and grammars beside each other. maximum: the field that says how
// long a reply may be.
void check_generation(const Json& body, const Values& values, const char* maximum, Check& check);

// Throws model_not_found, model_loading, server_overloaded. Without a name the only model there is.
std::shared_ptr<api::Service> find_model(App& app, const std::optional<std::string>& name);

// All of a Work but its prompt, and what the model has to do with: logit_bias is checked here.
api::Work read_work(const Values& values, const Exchange& exchange, const api::Service& service);

void log_user(const Values& values, Exchange& exchange);

// What the reply is held to by grammar, json_schema or response_format; null: nothing.
std::unique_ptr<grammar::Automaton> read_constraint(const Values& values);

// Tools of a request: `list` and `choice` in the form of chat completions, which outlive what is returned;
// param: the path of the list, schema: that of the parameters in each. Compiles each tool's parameters. Null
// without tools.
std::shared_ptr<dialect::ToolUse> read_tools(const Json* list, const Json* choice, bool parallel,
                                             const std::string& param,
                                             std::string_view schema = "function.parameters");

// Renders the conversation and completes the plan, which has service, works[0] and use: dialect, prompt,
// markers and what holds the reply. tools_param: the path of the tools, for templates that know none.
void set_prompt(Plan& plan, const Conversation& conversation, std::unique_ptr<grammar::Automaton> held,
                const std::string& tools_param);

// Of tools that stand twice, and of a choice among tools that are not there. All in the form of chat
// completions.
void check_tools(const Values& values, Check& check);

// The prefix and so many letters and digits that nobody can guess.
std::string make_id(std::string_view prefix, int letters = 24);
// Nine letters: the templates of Mistral take no other.
inline std::string make_call_id() { return make_id("", 9); }
int64_t unix_time();
// Of what replies are bound to: build and numerics.
std::string fingerprint();

}  // namespace juno::server
