// SPDX-License-Identifier: Apache-2.0
// The chat at a terminal.
#pragma once
#include "cli/conversation.h"
#include "cli/line_editor.h"
#include "cli/options.h"
#include "cli/partner.h"

namespace juno::cli {

struct ReplOptions {
  api::Generation generation;
  bool raw = false;    // each line is continued as it stands, without a template or history
  bool quiet = false;  // replies only
};

class Repl {
 public:
  Repl(Partner& partner, ReplOptions options, Conversation conversation);

  // Returns the exit status: 0 after Ctrl-D and /exit, 130 after Ctrl-C.
  int run();

 private:
  struct Slash {
    const char* name;
    const char* help;
    void (Repl::*act)(const std::string& argument);
    bool takes_argument, of_conversation;
  };
  static const Slash kSlashes[];

  LineEditor::End read_message(std::string& text);
  void obey(const std::string& text);
  void answer(const std::string& text);
  void keep();
  void command(const std::string& line);
  void help(const std::string&);
  void reset(const std::string&);
  void system(const std::string& text);
  void save(const std::string& path);
  void load(const std::string& path);
  void set(const std::string& assignment);
  void stats(const std::string&);
  void exit(const std::string&);

  Partner& partner_;
  ReplOptions options_;
  Conversation conversation_;
  LineEditor editor_;
  std::string last_;  // the file that keeps the conversation; "": none can be kept
  bool done_ = false;
};

}  // namespace juno::cli
