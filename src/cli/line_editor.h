// SPDX-License-Identifier: Apache-2.0
// One message typed at a terminal: editing and history by libedit, a bracketed paste as one piece of text.
#pragma once
#include <memory>
#include <string>

namespace juno::cli {

class LineEditor {
 public:
  enum class End { kLine, kInterrupt, kEof };

  // history: a file that is read now and rewritten by the destructor; "" keeps none.
  explicit LineEditor(std::string history);
  ~LineEditor();

  // Shows `prompt` and fills `text` (UTF-8, inner newlines kept, the last one taken off). kInterrupt: Ctrl-C
  // at an empty prompt; with text there it only empties the line.
  End read(const std::string& prompt, std::string& text);
  // Whether Ctrl-C emptied a line during the last read().
  bool emptied() const;
  // Makes a text that came from read() the last line of the history.
  void remember(const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace juno::cli
