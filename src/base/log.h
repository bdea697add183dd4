// SPDX-License-Identifier: Apache-2.0
// Where a library room says what is not an error: passed in, never global, silent when nobody listens.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

namespace juno {

enum class Level { kDebug, kInfo, kNotice, kWarning };  // notice: no fault, but everybody should know

struct Log {
  std::function<void(Level, const std::string&)> sink;

  template <class... Args>
  void warn(fmt::format_string<Args...> text, Args&&... args) const {
    if (sink) sink(Level::kWarning, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void notice(fmt::format_string<Args...> text, Args&&... args) const {
    if (sink) sink(Level::kNotice, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) const {
    if (sink) sink(Level::kInfo, fmt::format(text, std::forward<Args>(args)...));
  }
};

}  // namespace juno
