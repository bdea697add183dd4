// SPDX-License-Identifier: Apache-2.0
// The parser around all commands: variables, suggestions, exit statuses.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/version.h"
#include "cli/command.h"
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

int usage_error(const CLI::App& app, const CLI::ParseError& e) {
  const CLI::App& where = chosen(app);
  std::string text = e.what();
  if (const auto left = app.remaining(true); !left.empty()) {
    std::string word = left.front();
    if (const size_t eq = word.find('='); eq != std::string::npos) word.resize(eq);
    std::vector<std::string> known = option_names(where);
    const bool flag = word.starts_with("-");
    if (!flag) {
      known.clear();
      for (const Command& c : commands()) known.push_back(c.name);
    }
    text = fmt::format("{} has no {} {}", where.get_name().empty() ? "juno" : "juno " + where.get_name(),
                       flag ? "option" : (where.get_name().empty() ? "command" : "argument"), word);
    if (const std::string hint = nearest(word, known); !hint.empty())
      text += fmt::format("; did you mean {}?", hint);
  }
  tell("juno: " + text);
  tell(fmt::format("juno: see {} --help", where.get_name().empty() ? "juno" : "juno " + where.get_name()));
  return static_cast<int>(Code::kUsage);
}

// A closed standard stream would become the next file that is opened. Its place is taken by something that
// cannot be written to.
void hold_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", O_RDONLY);
}

int failed(Code code, const std::string& message) {
  tell("juno: " + message);
  return static_cast<int>(code);
}

}  // namespace

void name_variables(CLI::App& app) {
  for (CLI::Option* o : app.get_options())
    if (!o->get_lnames().empty() && o->get_lnames().front() != "help")
      o->envname(variable_of(o->get_lnames().front()));
}

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
  const std::string text = line + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

Log stderr_log(bool verbose, bool quiet) {
  return {[=](Level level, const std::string& text) {
    if (level == Level::kWarning) tell("warning: " + text);
    else if (verbose && !quiet) tell(text);
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
    name_variables(*sub);
    sub->callback([&run, body] { run = body; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return usage_error(app, e);
  }
  try {
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
