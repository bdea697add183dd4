// SPDX-License-Identifier: Apache-2.0
// Errors. Inside a room code may throw Error (see fail); a room's public functions return Result<T>,
// which guard() makes from what was thrown. Nothing else leaves a room.
#pragma once
#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace juno {

// Also the exit status of the command that met it (sysexits.h where a name exists).
enum class Code : int {
  kFailed = 1,
  kUsage = 2,
  kBadData = 65,   // a file or request whose content is wrong
  kNoInput = 66,   // no such file, or one that cannot be read
  kDevice = 69,    // a device that was asked for cannot be used
  kNotFound = 72,  // a name that nothing answers to: a model, a session
  kBusy = 75,      // no room now; later there may be
  kConfig = 78,    // the model has no chat template and none was given
  kInterrupted = 130,
};

// message: one sentence, prefixed by the room: "[gguf] tensor blk.3.attn_q.weight needs …, the file has …".
struct Error : std::exception {
  Error(Code c, std::string text) : code(c), message(std::move(text)) {}
  const char* what() const noexcept override { return message.c_str(); }
  Code code;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

template <class... Args>
[[noreturn]] void fail(Code code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

// The value of a Result, or its error thrown: for use inside a room.
template <class T>
T take(Result<T>&& result) {
  if (!result) throw std::move(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Runs a room's inner code at its border.
template <class F>
auto guard(F&& body) -> Result<decltype(body())> {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return {};
    } else {
      return body();
    }
  } catch (Error& e) {
    return tl::unexpected(std::move(e));
  } catch (const std::bad_alloc&) {
    return tl::unexpected(Error(Code::kFailed, "[base] out of memory"));
  }
}

}  // namespace juno
