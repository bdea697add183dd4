// SPDX-License-Identifier: Apache-2.0
#include "cli/repl.h"

#include <CLI/CLI.hpp>

#include "api/version.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/reply.h"
#include "cli/suggest.h"

namespace juno::cli {
namespace {

void say(const std::string& text) { fmt::print(stderr, "{}\n", text); }

}  // namespace

const Repl::Slash Repl::kSlashes[] = {
    {"/help", "what can be typed here", &Repl::help},
    {"/reset", "forget the conversation, keep the system message", &Repl::reset},
    {"/system", "TEXT: set the system message; nothing: remove it", &Repl::system},
    {"/save", "FILE: write the conversation", &Repl::save},
    {"/load", "FILE: go on with a saved conversation; nothing: the last one", &Repl::load},
    {"/set", "NAME VALUE: change a sampling option; nothing: show them", &Repl::set},
    {"/stats", "tokens, speed and memory so far", &Repl::stats},
    {"/exit", "leave (also Ctrl-D)", &Repl::exit},
};

Repl::Repl(api::Session& session, SamplingOptions sampling, Conversation conversation, bool raw)
    : session_(session), sampling_(std::move(sampling)), conversation_(std::move(conversation)), raw_(raw) {}

int Repl::run() {
  const api::Info& info = session_.info();
  say(fmt::format("Juno {} · {} · context {} · {} {}, {} threads · /help for help, Ctrl-D to leave", kVersion,
                  printable(info.name.empty() ? info.path : info.name), info.context, info.backend, info.isa, info.threads));
  LineEditor editor(state_file("history"));
  bool asked = false;
  int status = 0;
  while (!done_) {
    std::string line;
    const LineEditor::End end = editor.read("> ", line);
    if (end == LineEditor::End::kEof) break;
    if (end == LineEditor::End::kInterrupt) {
      if (asked) {
        status = static_cast<int>(Code::kInterrupted);
        break;
      }
      asked = true;
      say("Ctrl-C again leaves; so does Ctrl-D.");
      continue;
    }
    asked = false;
    if (line.find_first_not_of(" \t\n") == std::string::npos) continue;
    try {
      if (line.front() == '/') command(line);
      else answer(line);
    } catch (const Error& e) {
      say("juno: " + e.message);
    }
  }
  if (const std::string last = state_file("last.json"); !last.empty() && !conversation_.messages.empty()) {
    conversation_.save(last);
    say("The conversation is kept: /load brings it back.");
  }
  return status;
}

void Repl::answer(const std::string& text) {
  const auto show = [](std::string_view piece) { print(std::string(piece)); };
  std::vector<api::Message> messages = conversation_.messages;
  messages.push_back({"user", text});
  const api::Reply reply = [&] {
    const Interruptible scope(session_);
    return take(raw_ ? session_.complete(text, sampling_.generation, show)
                     : session_.chat(messages, sampling_.generation, show));
  }();
  print("\n");
  say(end_line(reply, session_.info()));
  if (raw_) return;
  messages.push_back({"assistant", reply.text});
  conversation_.messages = std::move(messages);
}

void Repl::command(const std::string& line) {
  const size_t space = line.find_first_of(" \n");
  const std::string name = line.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : line.substr(line.find_first_not_of(" \n", space) == std::string::npos
                                                                                 ? line.size()
                                                                                 : line.find_first_not_of(" \n", space));
  std::vector<std::string> names;
  for (const Slash& slash : kSlashes) {
    if (name == slash.name) return (this->*slash.act)(argument);
    names.push_back(slash.name);
  }
  const std::string hint = nearest(name, names);
  fail(Code::kUsage, "[cli] no command {}{}", printable(name), hint.empty() ? "; /help lists them" : "; did you mean " + hint + "?");
}

void Repl::help(const std::string&) {
  for (const Slash& slash : kSlashes) say(fmt::format("  {:<8} {}", slash.name, slash.help));
  say("  Ctrl-C ends an answer and keeps what was said. A pasted text of many lines is one message.");
}

void Repl::reset(const std::string&) {
  conversation_.reset();
  say("The conversation is forgotten.");
}

void Repl::system(const std::string& text) {
  conversation_.set_system(text);
  say(text.empty() ? "No system message." : "The system message is set.");
}

void Repl::save(const std::string& path) {
  if (path.empty()) fail(Code::kUsage, "[cli] /save needs a file");
  conversation_.save(path);
  say(fmt::format("{} messages written to {}.", conversation_.messages.size(), path));
}

void Repl::load(const std::string& path) {
  const std::string from = path.empty() ? state_file("last.json") : path;
  conversation_ = Conversation::load(from);
  say(fmt::format("{} messages read from {}.", conversation_.messages.size(), from));
}

void Repl::set(const std::string& assignment) {
  // The same options, ranges and messages as on the command line.
  SamplingOptions changed = sampling_;
  CLI::App options;
  add_sampling_options(options, changed);
  if (assignment.empty()) {
    for (const CLI::Option* o : options.get_options())
      if (!o->get_default_str().empty()) say(fmt::format("  {:<20} {}", o->get_lnames().front(), o->get_default_str()));
    return;
  }
  const size_t space = assignment.find_first_of(" =");
  if (space == std::string::npos) fail(Code::kUsage, "[cli] /set needs a name and a value, as in /set temperature 0.5");
  try {
    options.parse("--" + assignment.substr(0, space) + "=" + assignment.substr(space + 1));
  } catch (const CLI::ParseError& e) {
    fail(Code::kUsage, "[cli] {}", e.what());
  }
  sampling_ = std::move(changed);
}

void Repl::stats(const std::string&) {
  const api::Stats s = session_.total();
  const api::Info& i = session_.info();
  const api::Memory memory = session_.memory(i.context);
  say(fmt::format("  prompts    {} tokens ({} cached) in {:.2f} s, {} of weights read", s.prompt_tokens, s.cached_tokens,
                  s.prefill_seconds, human_bytes(s.prefill_bytes)));
  say(fmt::format("  replies    {} tokens in {:.2f} s, {} of weights read", s.new_tokens, s.decode_seconds,
                  human_bytes(s.decode_bytes)));
  say(fmt::format("  memory     weights {} (mapped), keys and values {} for {} positions", human_bytes(memory.weights),
                  human_bytes(memory.kv), i.context));
  say(fmt::format("  ran on     {} {}, {} threads, activations {}; {} operations elsewhere", i.backend, i.isa, i.threads,
                  i.activations, s.declined));
}

void Repl::exit(const std::string&) { done_ = true; }

}  // namespace juno::cli
