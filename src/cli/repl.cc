// SPDX-License-Identifier: Apache-2.0
#include "cli/repl.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "api/version.h"
#include "cli/format.h"
#include "cli/line_editor.h"
#include "cli/suggest.h"

namespace juno::cli {
namespace {

std::string count_of(const Conversation& conversation) {
  const size_t n = conversation.messages.size();
  return fmt::format("{} message{}", n, n == 1 ? "" : "s");
}

// "~/" as a shell reads it.
std::string expanded(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home && *home ? home + path.substr(1) : path;
}

std::vector<std::string> long_names(const CLI::App& options) {
  std::vector<std::string> names;
  for (const CLI::Option* o : options.get_options()) names.push_back(o->get_lnames().front());
  return names;
}

void list_options(const CLI::App& options, const api::Generation& how) {
  const auto line = [](const std::string& name, const std::string& value) {
    tell(fmt::format("  {:<20} {}", name, value.empty() ? "none" : value));
  };
  for (const CLI::Option* o : options.get_options())
    if (!o->get_default_str().empty()) line(o->get_lnames().front(), o->get_default_str());
  std::string stops, biases;
  for (const std::string& s : how.stop)
    stops += fmt::format("{}\"{}\"", stops.empty() ? "" : " ", printable(s));
  for (const auto& [id, bias] : how.sampling.logit_bias)
    biases += fmt::format("{}{}={}", biases.empty() ? "" : " ", id, bias);
  line("stop", stops);
  line("logit-bias", biases);
}

}  // namespace

const Repl::Slash Repl::kSlashes[] = {
    {"/help", "what can be typed here", &Repl::help, false, false},
    {"/reset", "forget the conversation, keep the system message", &Repl::reset, false, true},
    {"/system", "TEXT: set the system message; nothing: remove it", &Repl::system, true, true},
    {"/save", "FILE: write the conversation", &Repl::save, true, true},
    {"/load", "FILE: go on with a saved conversation; nothing: the last one", &Repl::load, true, true},
    {"/set", "NAME VALUE: change a sampling option; nothing: show them", &Repl::set, true, false},
    {"/stats", "tokens, speed and memory so far", &Repl::stats, false, false},
    {"/exit", "leave (also Ctrl-D)", &Repl::exit, false, false},
};

Repl::Repl(Partner& partner, ReplOptions options, Conversation conversation)
    : partner_(partner),
      options_(std::move(options)),
      conversation_(std::move(conversation)),
      editor_(state_file("history")),
      last_(state_file("last.json")) {}

int Repl::run() {
  if (!options_.quiet)
    tell(fmt::format("Juno {} · {} · /help for help, Ctrl-D to leave", kVersion, partner_.about()));
  std::signal(SIGINT, SIG_IGN);  // where nothing is answered and no line is edited
  bool asked = false;
  while (!done_) {
    std::string text;
    const LineEditor::End end = read_message(text);
    if (end == LineEditor::End::kEof) break;
    if (end == LineEditor::End::kInterrupt) {
      if (std::exchange(asked, true) && !editor_.emptied()) return static_cast<int>(Code::kInterrupted);
      tell("Ctrl-C again leaves; so does Ctrl-D.");
      continue;
    }
    asked = false;
    editor_.remember(text);
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
  const Answer answer = options_.raw ? partner_.go_on(text, how) : partner_.answer(messages, how);
  print("\n");
  const bool said = !answer.text.empty() || !answer.cancelled;
  if (!options_.raw && said) {
    messages.push_back({"assistant", answer.text});
    conversation_.messages = std::move(messages);
    keep();
  }
  if (!said) tell("Nothing was answered; the message is the last line of the history.");
  if (!options_.quiet) tell(answer.figures);
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
    names.push_back(slash.name);
    if (name != slash.name) continue;
    if (options_.raw && slash.of_conversation)
      fail(Code::kUsage, "[cli] {}: there is no conversation, with --no-chat each line stands alone", name);
    if (!argument.empty() && !slash.takes_argument) fail(Code::kUsage, "[cli] {} takes no argument", name);
    return (this->*slash.act)(argument);
  }
  const std::string hint = nearest(name, names);
  fail(Code::kUsage, "[cli] no command {}{}", printable(name),
       hint.empty() ? "; /help lists them" : "; did you mean " + hint + "?");
}

void Repl::help(const std::string&) {
  for (const Slash& slash : kSlashes)
    if (!options_.raw || !slash.of_conversation) tell(fmt::format("  {:<8} {}", slash.name, slash.help));
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
  conversation_.save(expanded(path));
  tell(fmt::format("{} written to {}.", count_of(conversation_), printable(path)));
}

void Repl::load(const std::string& path) {
  const std::string from = path.empty() ? last_ : expanded(path);
  if (from.empty())
    fail(Code::kUsage, "[cli] /load needs a file: there is no folder that keeps the last conversation");
  conversation_ = Conversation::load(from);
  tell(fmt::format("{} read from {}.", count_of(conversation_), printable(from)));
}

// "NAME VALUE" or "NAME=VALUE". stop and logit-bias hold many: a value is added, none empties them.
void Repl::set(const std::string& assignment) {
  // The same options, ranges and messages as on the command line.
  api::Generation changed = options_.generation;
  CLI::App options;
  options.set_help_flag();
  options.option_defaults()->always_capture_default();
  add_sampling_options(options, changed);
  if (assignment.empty()) return list_options(options, changed);

  const size_t end = std::min(assignment.find_first_of(" ="), assignment.size());
  std::string name = assignment.substr(0, end);
  std::replace(name.begin(), name.end(), '_', '-');
  const std::string value =
      assignment.substr(std::min(assignment.find_first_not_of(' ', end + 1), assignment.size()));
  const std::vector<std::string> names = long_names(options);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string hint = nearest(name, names);
    fail(Code::kUsage, "[cli] /set has no {}{}", printable(name),
         hint.empty() ? "; /set alone lists all" : "; did you mean " + hint + "?");
  }
  if (value.empty()) {
    if (name == "stop") changed.stop.clear();
    else if (name == "logit-bias") changed.sampling.logit_bias.clear();
    else fail(Code::kUsage, "[cli] /set {} needs a value", name);
  } else {
    try {
      options.parse("--" + name + "=" + value);
    } catch (const CLI::ParseError& e) {
      fail(Code::kUsage, "[cli] {}", e.what());
    }
    const auto keep = [](auto& list, const auto& before) {
      list.insert(list.begin(), before.begin(), before.end());
    };
    if (name == "stop") keep(changed.stop, options_.generation.stop);
    if (name == "logit-bias") keep(changed.sampling.logit_bias, options_.generation.sampling.logit_bias);
  }
  partner_.check(changed);
  options_.generation = std::move(changed);
}

void Repl::stats(const std::string&) { partner_.show_stats(); }

void Repl::exit(const std::string&) { done_ = true; }

}  // namespace juno::cli
