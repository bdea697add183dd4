// SPDX-License-Identifier: Apache-2.0
// Finds stop strings in a stream of text. Text that could still become one is held back until that is
// decided.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace juno::engine {

// The text ends where the first match begins, wherever the borders of its pieces fall. Time is linear in the
// text times the length of all stop strings.
class StopMatcher {
 public:
  // Empty strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  // Appends to `out` the text that is now certain. False once a stop string is complete; later text is
  // dropped.
  bool push(std::string_view text, std::string& out);
  // No more text comes: appends what was held back, up to a stop string that it still holds.
  void flush(std::string& out);

  bool stopped() const { return stop_.has_value(); }
  const std::optional<std::string>& stop() const { return stop_; }  // that was found, the first of several

 private:
  void release(std::string& out, bool more);

  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::string> stop_;
};

}  // namespace juno::engine
