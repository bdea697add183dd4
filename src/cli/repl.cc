// SPDX-License-Identifier: Apache-2.0
#include "cli/repl.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <utility>

#include "api/version.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/reply.h"
#include "cli/suggest.h"

namespace juno::cli {

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

Repl::Repl(api::Session& session, ReplOptions options, Conversation conversation)
    : session_(session),
      options_(std::move(options)),
      conversation_(std::move(conversation)),
      editor_(state_file("history")),
      last_(state_file("last.json")) {}

int Repl::run() {
  const api::Info& info = session_.info();
  if (!options_.quiet) {
    tell(fmt::format("Juno {} · {} · context {} · {} {}, {} thread{} · /help for help, Ctrl-D to leave",
                     kVersion, printable(info.name.empty() ? info.path : info.name), info.context,
                     info.backend, info.isa, info.threads, info.threads == 1 ? "" : "s"));
  }
  std::signal(SIGINT, SIG_IGN);  // where nothing is answered and no line is edited
  bool asked = false;
  while (!done_) {
    std::string text;
    const LineEditor::End end = read_message(text);
    if (end == LineEditor::End::kEof) break;
    if (end == LineEditor::End::kInterrupt) {
      if (std::exchange(asked, true)) return static_cast<int>(Code::kInterrupted);
      tell("Ctrl-C again leaves; so does Ctrl-D.");
      continue;
    }
    asked = false;
    obey(text);
  }
  if (!options_.quiet && !last_.empty() && !conversation_.messages.empty())
    tell("The conversation is kept: /load brings it back.");
  return 0;
}

// A line that ends in a backslash goes on in the next one.
LineEditor::End Repl::read_message(std::string& text) {
  LineEditor::End end = editor_.read("> ", text);
  while (end == LineEditor::End::kLine && text.ends_with('\\')) {
    std::string more;
    end = editor_.read("| ", more);
    text.back() = '\n';
    text += more;
    if (end == LineEditor::End::kInterrupt) {  // takes the message back, leaves nothing
      text.clear();
      return LineEditor::End::kLine;
    }
  }
  return end;
}

void Repl::obey(const std::string& text) {
  if (text.find_first_not_of(" \t\n") == std::string::npos) return;
  try {
    if (text.front() == '/') command(text);
    else answer(text);
  } catch (const Error& e) {
    tell("juno: " + e.message);
  }
}

void Repl::answer(const std::string& text) {
  std::vector<api::Message> messages = conversation_.messages;
  messages.push_back({"user", text});
  const api::Generation& how = options_.generation;
  const api::Reply reply = [&] {
    const Interruptible scope(session_);
    return take(options_.raw ? session_.complete(text, how, show) : session_.chat(messages, how, show));
  }();
  print("\n");
  const bool said = !reply.text.empty() || reply.reason != api::FinishReason::kCancelled;
  if (!options_.raw && said) {
    messages.push_back({"assistant", reply.text});
    conversation_.messages = std::move(messages);
    keep();
  }
  if (!options_.quiet) tell(end_line(reply, session_.info()));
}

// After each answer, so that nothing that ends the program takes the conversation with it.
void Repl::keep() {
  if (last_.empty()) return;
  try {
    conversation_.save(last_);
  } catch (const Error& e) {
    tell("warning: the conversation is not kept: " + e.message);
    last_.clear();
  }
}

void Repl::command(const std::string& line) {
  const size_t end = std::min(line.find_first_of(" \n"), line.size());
  const std::string name = line.substr(0, end);
  const std::string argument = line.substr(std::min(line.find_first_not_of(" \n", end), line.size()));
  std::vector<std::string> names;
  for (const Slash& slash : kSlashes) {
    if (name == slash.name) return (this->*slash.act)(argument);
    names.push_back(slash.name);
  }
  const std::string hint = nearest(name, names);
  fail(Code::kUsage, "[cli] no command {}{}", printable(name),
       hint.empty() ? "; /help lists them" : "; did you mean " + hint + "?");
}

void Repl::help(const std::string&) {
  for (const Slash& slash : kSlashes) tell(fmt::format("  {:<8} {}", slash.name, slash.help));
  tell(
      "  A line that ends in \\ goes on in the next; a pasted text of many lines is one message. A blank "
      "before a");
  tell(
      "  slash makes it text. Ctrl-C ends an answer and keeps what was said. Ctrl-R searches what was typed "
      "before.");
}

void Repl::reset(const std::string&) {
  conversation_.reset();
  tell("The conversation is forgotten.");
}

void Repl::system(const std::string& text) {
  conversation_.set_system(text);
  tell(text.empty() ? "No system message." : "The system message is set.");
}

void Repl::save(const std::string& path) {
  if (path.empty()) fail(Code::kUsage, "[cli] /save needs a file");
  conversation_.save(path);
  tell(fmt::format("{} messages written to {}.", conversation_.messages.size(), printable(path)));
}

void Repl::load(const std::string& path) {
  const std::string& from = path.empty() ? last_ : path;
  if (from.empty())
    fail(Code::kUsage, "[cli] /load needs a file: there is no folder that keeps the last conversation");
  conversation_ = Conversation::load(from);
  tell(fmt::format("{} messages read from {}.", conversation_.messages.size(), printable(from)));
}

void Repl::set(const std::string& assignment) {
  // The same options, ranges and messages as on the command line.
  api::Generation changed = options_.generation;
  CLI::App options;
  options.option_defaults()->always_capture_default();
  add_sampling_options(options, changed);
  if (assignment.empty()) {
    for (const CLI::Option* o : options.get_options())
      if (!o->get_default_str().empty())
        tell(fmt::format("  {:<20} {}", o->get_lnames().front(), o->get_default_str()));
    return;
  }
  const size_t space = assignment.find_first_of(" =");
  if (space == std::string::npos)
    fail(Code::kUsage, "[cli] /set needs a name and a value, as in /set temperature 0.5");
  try {
    options.parse("--" + assignment.substr(0, space) + "=" + assignment.substr(space + 1));
  } catch (const CLI::ParseError& e) {
    fail(Code::kUsage, "[cli] {}", e.what());
  }
  options_.generation = std::move(changed);
}

void Repl::stats(const std::string&) {
  const api::Stats s = session_.total();
  const api::Info& i = session_.info();
  const api::Memory memory = session_.memory(i.context);
  tell(fmt::format("  prompts    {} tokens ({} cached) in {:.2f} s, {} of weights read", s.prompt_tokens,
                   s.cached_tokens, s.prefill_seconds, human_bytes(s.prefill_bytes)));
  tell(fmt::format("  replies    {} tokens in {:.2f} s, {} of weights read", s.new_tokens, s.decode_seconds,
                   human_bytes(s.decode_bytes)));
  tell(fmt::format("  memory     weights {} (mapped), keys and values {} for {} positions",
                   human_bytes(memory.weights), human_bytes(memory.kv), i.context));
  tell(fmt::format("  ran on     {} {}, {} threads, activations {}; {} operations elsewhere", i.backend,
                   i.isa, i.threads, i.activations, s.declined));
}

void Repl::exit(const std::string&) { done_ = true; }

}  // namespace juno::cli
