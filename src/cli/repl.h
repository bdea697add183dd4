// SPDX-License-Identifier: Apache-2.0
// The chat at a terminal.
#pragma once
#include "api/session.h"
#include "cli/conversation.h"
#include "cli/options.h"

namespace juno::cli {

class Repl {
 public:
  Repl(api::Session& session, SamplingOptions sampling, Conversation conversation, bool raw);

  // Returns the exit status: 0 after Ctrl-D and /exit, 130 after Ctrl-C.
  int run();

 private:
  struct Slash {
    const char* name;
    const char* help;
    void (Repl::*act)(const std::string& argument);
  };
  static const Slash kSlashes[];

  void answer(const std::string& text);
  void command(const std::string& line);
  void help(const std::string&);
  void reset(const std::string&);
  void system(const std::string& text);
  void save(const std::string& path);
  void load(const std::string& path);
  void set(const std::string& assignment);
  void stats(const std::string&);
  void exit(const std::string&);

  api::Session& session_;
  SamplingOptions sampling_;
  Conversation conversation_;
  bool raw_;  // each line is continued as it stands, without a template or history
  bool done_ = false;
};

}  // namespace juno::cli
