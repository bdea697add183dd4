// SPDX-License-Identifier: Apache-2.0
// Errors and warnings of rooms that do not know which file they read: here it is known.
#pragma once
#include <string>

#include "base/error.h"
#include "base/log.h"

namespace juno::api {

// "[room] sentence" becomes "[room] file: sentence", unless the file is named already.
inline std::string named(const std::string& message, const std::string& file) {
  if (message.find(file) != std::string::npos) return message;
  const size_t room = message.starts_with('[') ? message.find("] ") : std::string::npos;
  if (room == std::string::npos) return "[api] " + file + ": " + message;
  return message.substr(0, room + 2) + file + ": " + message.substr(room + 2);
}

template <class T>
Result<T> named(Result<T> result, const std::string& file) {
  if (!result) result.error().message = named(result.error().message, file);
  return result;
}

inline Log named(const Log& log, const std::string& file) {
  return {[log, file](Level level, const std::string& text) {
    if (log.sink) log.sink(level, named(text, file));
  }};
}

}  // namespace juno::api
