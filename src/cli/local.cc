// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "cli/interrupt.h"
#include "cli/local_api.h"
#include "cli/options.h"
#include "cli/repl.h"
#include "cli/reply.h"
#include "cli/session_partner.h"

namespace juno::cli {
namespace {

struct LocalOptions {
  ModelOptions model;
  api::Generation generation;
  std::optional<std::string> prompt;
  std::string prompt_file, system, load, grammar, json_schema;
  LocalApi api;
  bool no_chat = false, quiet = false, json = false, verbose = false;
};

// Named here so that they are refused by name instead of swallowed.
struct Missing {
  const char* flag;
  const char* why;
};
constexpr Missing kMissing[] = {
    {"--nodes", "running over several machines does not exist yet"},
    {"--pType", "splitting a model over machines does not exist yet"},
    {"--dtype", "weights run in the file's own types; converting them does not exist yet"},
};

void refuse_missing(CLI::App& app) {
  for (const Missing& m : kMissing)
    app.add_option_function<std::string>(
        m.flag, [m](const std::string&) { throw CLI::ValidationError(m.flag, m.why); },
        fmt::format("Refused: {}", m.why));
}

// One turn, then the end: the reply alone on stdout, what is said about it on stderr.
int one_turn(api::Session& session, const LocalOptions& o, const Conversation& conversation) {
  const Interruptible scope(session);
  const api::OnText on_text = o.json ? api::OnText{} : show;
  const api::Reply reply =
      take(o.no_chat ? session.complete(conversation.messages.back().content, o.generation, on_text)
                     : session.chat(conversation.messages, o.generation, on_text));
  if (o.json) {
    const auto json = reply_json(reply, session, o.generation.sampling.seed);
    print(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    print("\n");
  }
  if (!o.quiet) tell(end_line(reply, session.info()));
  return reply.reason == api::FinishReason::kCancelled ? static_cast<int>(Code::kInterrupted) : 0;
}

// What --prompt, --prompt-file or a stdin that is no terminal holds; nothing: a person is to be asked.
std::optional<std::string> given_text(const LocalOptions& o) {
  if (o.prompt) return o.prompt;
  const bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  if (o.prompt_file.empty() && terminal) return {};
  std::string text = read_text(o.prompt_file.empty() ? "-" : o.prompt_file);
  // A message is what was written, without the line end that a file ends with.
  if (!o.no_chat && text.ends_with('\n')) text.pop_back();
  return text;
}

// What --grammar or --json-schema says: the text itself where it looks like one, else the name of a file.
api::Grammar given_grammar(const LocalOptions& o) {
  const auto text = [](const std::string& given, bool is_text) { return is_text ? given : read_text(given); };
  const std::string &gbnf = o.grammar, &schema = o.json_schema;
  if (!gbnf.empty()) return take(api::read_gbnf(text(gbnf, gbnf.find("::=") != gbnf.npos)));
  if (schema.empty()) return {};
  const size_t first = schema.find_first_not_of(" \t\r\n");
  const bool is_object = first != schema.npos && schema[first] == '{';
  return take(api::read_json_schema(text(schema, is_object || schema == "true" || schema == "false")));
}

// What only a chat has.
void refuse_without_chat(const LocalOptions& o) {
  const std::pair<const char*, bool> given[] = {{"--system", !o.system.empty()},
                                                {"--chat-template", !o.model.session.chat_template.empty()},
                                                {"--load", !o.load.empty()}};
  for (const auto& [flag, is_given] : given)
    if (is_given)
      fail(Code::kUsage, "[cli] {} has no meaning with --no-chat: there is no conversation", flag);
}

// A chat is the only use of this model that goes with serving it.
int serve_too(const LocalOptions& o) {
  const std::pair<const char*, bool> given[] = {{"--prompt", o.prompt.has_value()},
                                                {"--prompt-file", !o.prompt_file.empty()},
                                                {"--json", o.json},
                                                {"--grammar", !o.grammar.empty()},
                                                {"--json-schema", !o.json_schema.empty()}};
  for (const auto& [flag, is_given] : given)
    if (is_given) fail(Code::kUsage, "[cli] {} does not go with --api-port", flag);
  Conversation conversation = o.load.empty() ? Conversation{} : Conversation::load(o.load);
  if (!o.system.empty()) conversation.set_system(o.system);
  return chat_beside_api(o.api, o.model, {o.generation, o.no_chat, o.quiet}, std::move(conversation));
}

int chat(LocalOptions& o) {
  if (o.no_chat) refuse_without_chat(o);
  if (o.api.port) return serve_too(o);
  o.generation.grammar = given_grammar(o);
  const std::optional<std::string> text = given_text(o);
  if (!text && o.json) fail(Code::kUsage, "[cli] --json needs --prompt or --prompt-file");
  if (text && text->empty()) {
    if (o.prompt) fail(Code::kUsage, "[cli] --prompt is empty");
    if (!o.prompt_file.empty() && o.prompt_file != "-")
      fail(Code::kBadData, "[cli] {} is empty", o.prompt_file);
    return 0;
  }
  Conversation conversation = o.load.empty() ? Conversation{} : Conversation::load(o.load);
  if (!o.system.empty()) conversation.set_system(o.system);
  const auto session = open_session(o.model, stderr_log(o.verbose, o.quiet));
  if (!o.no_chat) take(session->chat_ready());
  take(session->check(o.generation));
  SessionPartner partner(*session);
  if (!text) return Repl(partner, {o.generation, o.no_chat, o.quiet}, std::move(conversation)).run();
  conversation.messages.push_back({"user", *text});
  return one_turn(*session, o, conversation);
}

}  // namespace

Run add_local(CLI::App& app) {
  auto o = std::make_shared<LocalOptions>();
  o->generation.max_tokens = 200;
  o->generation.sampling = {.temperature = 0.7f, .top_k = 50, .top_p = 0.9f};
  add_model_options(app, o->model);
  add_sampling_options(app, o->generation);
  CLI::Option* seed = app.get_option("--seed")->default_str("random");
  app.add_option("--chat-template", o->model.session.chat_template,
                 "A built-in template's name or a Jinja file; else the model's own");
  app.add_option("--system", o->system, "System message");
  auto* prompt = app.add_option("--prompt,-p", o->prompt, "Answer this one message, then exit");
  app.add_option("--prompt-file", o->prompt_file, "The same, from a file (- for stdin)")->excludes(prompt);
  auto* grammar =
      app.add_option("--grammar", o->grammar, "Hold the reply to a grammar: GBNF, or a file of it");
  app.add_option("--json-schema", o->json_schema,
                 "Hold the reply to JSON that satisfies this JSON Schema, or that of a file")
      ->excludes(grammar);
  app.add_option("--draft-model", o->model.session.draft_model,
                 "GGUF file of a smaller model that guesses tokens; the text stays the same");
  app.add_option("--prompt-lookup", o->model.session.prompt_lookup,
                 "Guess so many tokens at once from the text so far; the text stays the same; 0: none")
      ->transform(in_range(int64_t{0}, int64_t{64}));
  app.add_option("--load", o->load, "Go on with a saved conversation");
  add_local_api_options(app, o->api);
  app.add_flag("--no-chat", o->no_chat, "Continue the text as it stands, without a chat template");
  app.add_flag("--quiet,-q", o->quiet, "Only the reply, on stdout");
  app.add_flag("--json", o->json, "The reply and its figures as one JSON object");
  app.add_flag("--verbose,-v", o->verbose, "Say more on stderr");
  refuse_missing(app);
  return [o, seed] {
    if (seed->count() == 0) o->generation.sampling.seed = std::random_device{}();
    return chat(*o);
  };
}

}  // namespace juno::cli
