// SPDX-License-Identifier: Apache-2.0
// The parser around all commands: variables, suggestions, exit statuses.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>

#include "api/version.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/suggest.h"

namespace juno::cli {
namespace {

std::string variable_of(const std::string& option) {
  std::string name = "JUNO_";
  for (char c : option)
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options())
    for (const std::string& n : o->get_lnames()) names.push_back("--" + n);
  return names;
}

// The sub-command that was being parsed, or the program.
const CLI::App& chosen(const CLI::App& app) {
  const auto subs = app.get_subcommands();
  return subs.empty() ? app : *subs.front();
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() ? fmt::format("juno {}", app.get_name()) : "juno";
}

using Typed =
    std::set<const CLI::Option*>;  // on the command line; what else has a value has it from its variable

// Declares the variable of every option of a command. One that was typed beats the variables of those it
// excludes.
void name_variables(CLI::App& app) {
  for (CLI::Option* o : app.get_options()) {
    if (o->get_lnames().empty() || o->get_lnames().front() == "help") continue;
    const auto rivals = o->get_excludes();
    const bool beaten = o->count() == 0 && std::any_of(rivals.begin(), rivals.end(),
                                                       [](const CLI::Option* r) { return r->count() > 0; });
    o->envname(beaten ? "" : variable_of(o->get_lnames().front()));
  }
}

// Twice: what was typed decides which variables count. An error of the first time is met again, unless a
// variable mends it.
void parse(CLI::App& app, int argc, char** argv, Typed& typed) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError&) {
  }
  for (CLI::App* sub : app.get_subcommands()) {
    for (const CLI::Option* o : sub->get_options())
      if (o->count() > 0) typed.insert(o);
    name_variables(*sub);
  }
  app.parse(argc, argv);
}

// An error of the parser in our words, naming the variable when the value came from there.
std::string reason(const CLI::App& where, const Typed& typed, const CLI::ParseError& e) {
  const std::string text = e.what();
  if (e.get_name() == "RequiredError" && !where.get_parent()) return "a command is needed";
  const auto spelled = [&](const CLI::Option* o) {
    return o->count() == 0 || typed.contains(o) ? o->get_name() : o->get_envname();
  };
  for (const CLI::Option* o : where.get_options()) {
    const std::string name = o->get_name();
    if (e.get_name() == "ExcludesError" && o->count() > 0)
      for (const CLI::Option* rival : o->get_excludes())
        if (rival->count() > 0)
          return fmt::format("{} and {} exclude each other", spelled(o), spelled(rival));
    if (e.get_name() == "ConversionError" && text.find(" " + name + " = ") != std::string::npos)
      return fmt::format("{}: \"{}\" is not a value it can take", spelled(o), fmt::join(o->results(), " "));
    if (!text.starts_with(name + ":")) continue;
    if (e.get_name() == "ArgumentMismatch") return fmt::format("{} needs a value", name);
    return spelled(o) + text.substr(name.size());
  }
  return text;
}

int usage_error(const CLI::App& app, const Typed& typed, const CLI::ParseError& e) {
  const CLI::App& where = chosen(app);
  const bool command_known = where.get_parent() != nullptr;
  std::string text = reason(where, typed, e);
  if (const auto left = app.remaining(true); !left.empty()) {
    std::string word = left.front();
    if (const size_t eq = word.find('='); eq != std::string::npos) word.resize(eq);
    std::vector<std::string> known = option_names(where);
    const bool flag = word.starts_with("-");
    if (!flag) known.clear();
    if (!flag && !command_known)
      for (const Command& c : commands()) known.push_back(c.name);
    text = fmt::format("{} has no {} {}", full_name(where),
                       flag ? "option" : (command_known ? "argument" : "command"), word);
    if (const std::string hint = nearest(word, known); !hint.empty())
      text += fmt::format("; did you mean {}?", hint);
  }
  tell("juno: " + printable(text));
  tell(fmt::format("juno: see {} --help", full_name(where)));
  return static_cast<int>(Code::kUsage);
}

// A closed standard stream would become the next file that is opened. Its place is taken by something that
// fails when it is read or written.
void hold_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int failed(Code code, const std::string& message) {
  tell("juno: " + printable(message));
  return static_cast<int>(code);
}

// An empty value would be taken for none; only an empty system message says something.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* o : app.get_options())
    if (!o->check_lname("system"))
      o->check([](const std::string& value) { return value.empty() ? "the value is empty" : std::string(); });
}

}  // namespace

void print(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n > 0) done += static_cast<size_t>(n);
    if (n >= 0 || errno == EINTR) continue;
    if (errno == EPIPE) std::_Exit(0);
    if (errno != EAGAIN) fail(Code::kFailed, "[cli] cannot write to stdout: {}", std::strerror(errno));
    pollfd room{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    ::poll(&room, 1, -1);
  }
}

void tell(const std::string& line) {
  const std::string text = harmless(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

Log stderr_log(bool verbose, bool quiet) {
  return {[=](Level level, const std::string& text) {
    if (level == Level::kWarning) tell("warning: " + printable(text));
    else if (level == Level::kNotice && !quiet) tell(printable(text));
    else if (verbose && !quiet) tell(printable(text));
  }};
}

int run_program(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  hold_standard_streams();
  CLI::App app{"Juno runs GGUF language models, with the same bits on every machine.", "juno"};
  app.set_version_flag("--version", api::version_text());
  app.require_subcommand(1);
  Run run;
  for (const Command& c : commands()) {
    CLI::App* sub = app.add_subcommand(c.name, c.help);
    if (*c.alias) sub->alias(c.alias);
    sub->option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    Run body = c.add(*sub);
    refuse_empty_values(*sub);
    sub->callback([&run, body] { run = body; });
  }
  try {
    Typed typed;
    try {
      parse(app, argc, argv, typed);
    } catch (const CLI::Success& e) {
      std::ostringstream text;
      app.exit(e, text, text);
      print(text.str());
      return 0;
    } catch (const CLI::ParseError& e) {
      return usage_error(app, typed, e);
    } catch (const std::exception& e) {
      return failed(Code::kUsage, e.what());
    }
    return run();
  } catch (const Error& e) {
    return failed(e.code, e.message);
  } catch (const std::bad_alloc&) {
    return failed(Code::kFailed, "out of memory");
  } catch (const std::exception& e) {
    return failed(Code::kFailed, e.what());
  }
}

}  // namespace juno::cli
