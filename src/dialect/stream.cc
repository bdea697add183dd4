// SPDX-License-Identifier: Apache-2.0
#include "dialect/stream.h"

#include <algorithm>

namespace juno::dialect {

void Stream::push(std::string_view text) {
  if (text.empty()) return;
  text_ += text;
  resume();
}

void Stream::finish() {
  ended_ = true;
  resume();
}

void Stream::resume() {
  if (const auto reader = std::exchange(reader_, {})) reader.resume();
}

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string_view without_blanks_at_end(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

size_t begun(std::string_view text, std::string_view mark) {
  for (size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n) {
    if (text.ends_with(mark.substr(0, n))) return n;
  }
  return 0;
}

Task<bool> accept(Stream& in, std::string_view text) {
  while (in.rest().size() < text.size()) {
    if (!text.starts_with(in.rest())) co_return false;
    const bool more = co_await in;
    if (!more) co_return false;
  }
  if (!in.rest().starts_with(text)) co_return false;
  in.skip(text.size());
  co_return true;
}

Task<bool> accept_words(Stream& in, std::string_view text) {
  const size_t begin = in.at();
  while (!text.empty()) {
    const size_t size = std::min(text.find_first_of(" \n"), text.size());
    if (size > 0) {
      co_await skip_blanks(in);
      if (!co_await accept(in, text.substr(0, size))) {
        in.go_to(begin);
        co_return false;
      }
    }
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  co_return true;
}

Task<bool> skip_blanks(Stream& in) {
  for (;;) {
    while (!in.rest().empty() && is_blank(in.rest().front())) in.skip(1);
    if (!in.rest().empty()) co_return true;
    const bool more = co_await in;
    if (!more) co_return true;
  }
}

Task<std::string> read_name(Stream& in) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
  std::string name;
  for (;;) {
    const std::string_view rest = in.rest();
    const size_t size = std::min(rest.find_first_not_of(kLetters), rest.size());
    name += rest.substr(0, size);
    in.skip(size);
    if (!in.rest().empty()) break;
    const bool more = co_await in;
    if (!more) break;
  }
  co_return name;
}

Task<bool> read_until(Stream& in, std::string_view mark, const Put& put) {
  for (;;) {
    const std::string_view rest = in.rest();
    const size_t found = rest.find(mark);
    const size_t size = found == rest.npos ? rest.size() - begun(rest, mark) : found;
    put(rest.substr(0, size));
    in.skip(size);
    if (found != rest.npos) {
      in.skip(mark.size());
      co_return true;
    }
    const bool more = co_await in;
    if (!more) co_return false;
  }
}

}  // namespace juno::dialect
