// SPDX-License-Identifier: Apache-2.0
#include "dialect/loose_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "dialect/json_text.h"

namespace juno::dialect {
namespace {

// Between quotes, with backslashes.
Task<bool> read_quoted(Stream& in, char quote, const Put& put) {
  in.skip(1);
  bool escaped = false;
  for (;;) {
    while (!in.rest().empty()) {
      const char c = in.rest()[0];
      in.skip(1);
      if (escaped) {
        escaped = false;
        const bool same = std::string_view("\\\"/bfnrtu").find(c) != std::string_view::npos;
        put(same ? std::string{'\\', c} : c == '\'' ? "'" : json_escaped(std::string{'\\', c}));
      } else if (c == '\\') {
        escaped = true;
      } else if (c == quote) {
        put("\"");
        co_return true;
      } else {
        put(json_escaped(std::string_view(&c, 1)));
      }
    }
    const bool more = co_await in;
    if (!more) co_return false;
  }
}

Task<bool> read_word(Stream& in, bool is_key, const Put& put) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  std::string word;
  for (bool more = true; more;) {  // 1e+5
    word += co_await read_name(in);
    more = co_await accept(in, "+");
    if (more) word += '+';
  }
  if (word.empty()) co_return false;
  for (const auto& [python, json] : kWords) {
    if (word == python) word = json;
  }
  put(!is_key && nlohmann::json::accept(word) ? word : '"' + json_escaped(word) + '"');
  co_return true;
}

Task<bool> read_scalar(Stream& in, std::string_view quote, bool is_key, const Put& put) {
  bool marked = !quote.empty();
  if (marked) marked = co_await accept(in, quote);
  if (marked) {
    put("\"");
    if (!co_await read_until(in, quote, [&](std::string_view text) { put(json_escaped(text)); }))
      co_return false;
    put("\"");
    co_return true;
  }
  if (in.rest().empty()) co_return false;
  const char first = in.rest()[0];
  if (first != '"' && first != '\'') co_return co_await read_word(in, is_key, put);
  put("\"");
  co_return co_await read_quoted(in, first, put);
}

// After a value: the brackets that close, and a comma where one stays open.
Task<bool> read_closes(Stream& in, std::string& open, const Put& put) {
  while (!open.empty()) {
    const bool more = co_await accept_words(in, ",");
    const std::string close(1, open.back());
    const bool closes = co_await accept_words(in, close);
    if (!closes) {
      if (more) put(", ");
      co_return more;
    }
    put(close);
    open.pop_back();
  }
  co_return true;
}

}  // namespace

Task<bool> read_loose_value(Stream& in, std::string_view quote, const Put& put) {
  std::string open;        // the brackets around, as they close
  bool is_key = false;     // a key comes next
  bool may_close = false;  // a bracket was just opened
  for (;;) {
    co_await skip_blanks(in);
    const char first = in.rest().empty() ? '\0' : in.rest()[0];
    if (first == '{' || first == '[') {
      if (is_key) co_return false;
      in.skip(1);
      put(std::string_view(&first, 1));
      open += first == '{' ? '}' : ']';
      is_key = first == '{';
      may_close = true;
      continue;
    }
    if (!may_close || first != open.back()) {
      may_close = false;
      if (!co_await read_scalar(in, quote, is_key, put)) co_return false;
      if (is_key) {
        is_key = false;
        if (!co_await accept_words(in, ":")) co_return false;
        put(": ");
        continue;
      }
    }
    may_close = false;
    if (!co_await read_closes(in, open, put)) co_return false;
    if (open.empty()) co_return true;
    is_key = open.back() == '}';
  }
}

}  // namespace juno::dialect
