// SPDX-License-Identifier: Apache-2.0
// The messages of a chat, and the file they are kept in.
#pragma once
#include <string>
#include <vector>

#include "api/session.h"

namespace juno::cli {

struct Conversation {
  std::vector<api::Message> messages;

  // Empties all but the system message.
  void reset();
  void set_system(const std::string& text);  // "": none

  // JSON {"juno_conversation": 1, "messages": [{"role", "content"}]}, written whole or not at all, for the
  // user alone. A link's target is written. kUsage where something else than a saved conversation lies.
  void save(const std::string& path) const;
  // A regular file of at most 64 MiB; kNoInput or kBadData, without waiting, for anything else.
  static Conversation load(const std::string& path);
};

// Where the last conversation and the line history are kept: $XDG_STATE_HOME/juno, else ~/.local/state/juno;
// "" when there is no home. Made if missing.
std::string state_file(const std::string& name);

}  // namespace juno::cli
