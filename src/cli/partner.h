// SPDX-License-Identifier: Apache-2.0
// Whom the chat at a terminal is with: a model in this process, or a server.
#pragma once
#include <span>
#include <string>

#include "api/session.h"

namespace juno::cli {

struct Answer {
  std::string text;
  bool cancelled = false;
  std::string figures;  // what is said about it, one line
};

// Errors leave it as Error.
class Partner {
 public:
  virtual ~Partner() = default;

  virtual std::string about() const = 0;  // name and what runs it, one line
  // kUsage names what is out of its range or unknown there.
  virtual void check(const api::Generation& how) = 0;
  // Shows the text as it comes; Ctrl-C ends it.
  virtual Answer answer(std::span<const api::Message> messages, const api::Generation& how) = 0;
  virtual Answer go_on(const std::string& text, const api::Generation& how) = 0;
  virtual void show_stats() = 0;
};

}  // namespace juno::cli
