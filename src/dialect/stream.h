// SPDX-License-Identifier: Apache-2.0
// The text of a reply as it comes, for readers written as if all of it were there.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "dialect/task.h"

namespace juno::dialect {

class Stream {
 public:
  void push(std::string_view text);
  void finish();

  // What has come and was not read; valid until the next co_await.
  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  void skip(size_t bytes) { at_ += bytes; }
  size_t at() const { return at_; }
  void go_to(size_t at) { at_ = at; }
  std::string_view between(size_t from, size_t to) const {
    return std::string_view(text_).substr(from, to - from);
  }

  // const bool more = co_await stream; waits for text; false when there is none to come. It must stand so:
  // gcc 12 lays out the frame of a coroutine wrongly that awaits what is no temporary inside a condition.
  bool await_ready() const noexcept { return ended_; }
  void await_suspend(std::coroutine_handle<> reader) noexcept { reader_ = reader; }
  bool await_resume() const noexcept { return !ended_; }

 private:
  void resume();

  std::string text_;
  size_t at_ = 0;
  bool ended_ = false;
  std::coroutine_handle<> reader_;
};

bool is_blank(char c);
std::string_view without_blanks_at_end(std::string_view text);

// How many bytes at the end of `text` may be the beginning of `mark`.
size_t begun(std::string_view text, std::string_view mark);

using Put = std::function<void(std::string_view)>;

// What accepts reads nothing where it gives false.
Task<bool> accept(Stream& in, std::string_view text);
// The words of `text`, whatever blanks are before and between them.
Task<bool> accept_words(Stream& in, std::string_view text);
Task<bool> skip_blanks(Stream& in);
// Letters, digits and _-. ; "" where there are none.
Task<std::string> read_name(Stream& in);
// What comes before `mark`, which is read, too; false where it never comes.
Task<bool> read_until(Stream& in, std::string_view mark, const Put& put);

}  // namespace juno::dialect
