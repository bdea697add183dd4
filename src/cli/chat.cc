// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <random>

#include "cli/options.h"
#include "cli/repl.h"
#include "cli/server_options.h"
#include "cli/server_partner.h"

namespace juno::cli {
namespace {

struct ChatOptions {
  ServerChoice server;
  api::Generation generation;
  std::optional<std::string> prompt;
  std::string model, system, load;
  bool no_chat = false, quiet = false;
};

// The message of --prompt or of a stdin that is no terminal; nothing: a person is to be asked.
std::optional<std::string> given_text(const ChatOptions& o) {
  if (o.prompt || (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))) return o.prompt;
  std::string text = read_text("-");
  if (!o.no_chat && text.ends_with('\n')) text.pop_back();
  return text;
}

int chat(const ChatOptions& o) {
  if (o.no_chat && !(o.system.empty() && o.load.empty()))
    fail(Code::kUsage, "[cli] --system and --load have no meaning with --no-chat: there is no conversation");
  const std::optional<std::string> text = given_text(o);
  if (text && text->empty()) fail(Code::kUsage, "[cli] there is no message");
  Conversation conversation = o.load.empty() ? Conversation{} : Conversation::load(o.load);
  if (!o.system.empty()) conversation.set_system(o.system);
  ServerPartner partner(o.server.with_key(), o.model);
  partner.check(o.generation);
  if (!text) return Repl(partner, {o.generation, o.no_chat, o.quiet}, std::move(conversation)).run();
  conversation.messages.push_back({"user", *text});
  const Answer answer =
      o.no_chat ? partner.go_on(*text, o.generation) : partner.answer(conversation.messages, o.generation);
  print("\n");
  if (!o.quiet) tell(answer.figures);
  return answer.cancelled ? static_cast<int>(Code::kInterrupted) : 0;
}

}  // namespace

Run add_chat(CLI::App& app) {
  auto o = std::make_shared<ChatOptions>();
  o->generation.max_tokens = -1;
  o->generation.sampling = {.temperature = 1};
  add_server_options(app, o->server);
  app.add_option("--model", o->model, "Name of a model there; without it, the first that the server names");
  add_sampling_options(app, o->generation);
  CLI::Option* seed = app.get_option("--seed")->default_str("random");
  app.add_option("--system", o->system, "System message");
  app.add_option("--prompt,-p", o->prompt, "Answer this one message, then exit");
  app.add_option("--load", o->load, "Go on with a saved conversation");
  app.add_flag("--no-chat", o->no_chat, "Continue the text as it stands, without a chat template");
  app.add_flag("--quiet,-q", o->quiet, "Only the reply, on stdout");
  return [o, seed] {
    if (seed->count() == 0) o->generation.sampling.seed = std::random_device{}();
    return chat(*o);
  };
}

}  // namespace juno::cli
