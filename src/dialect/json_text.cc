// SPDX-License-Identifier: Apache-2.0
#include "dialect/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace juno::dialect {
namespace {

// Finds the end of a value.
class Scan {
 public:
  // The bytes of `text` that belong to the value.
  size_t read(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (in_string_) {
        if (string_goes_on(c)) continue;
        if (depth_ == 0) return end(i + 1);
      } else if (c == '"') {
        in_string_ = true;
      } else if (c == '{' || c == '[') {
        ++depth_;
      } else if (c == '}' || c == ']') {
        if (depth_ == 0) return end(i);
        if (--depth_ == 0) return end(i + 1);
      } else if (depth_ == 0 && (c == ',' || is_blank(c))) {
        return end(i);
      }
    }
    return text.size();
  }
  bool ended() const { return ended_; }
  bool may_end() const { return depth_ == 0 && !in_string_; }  // a number or a word

 private:
  bool string_goes_on(char c) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
    return in_string_;
  }
  size_t end(size_t size) {
    ended_ = true;
    return size;
  }

  size_t depth_ = 0;
  bool in_string_ = false, escaped_ = false, ended_ = false;
};

}  // namespace

std::string json_escaped(std::string_view text) {
  constexpr std::string_view kNamed = "\"\\\b\f\n\r\t", kNames = "\"\\bfnrt";
  std::string out;
  for (const char c : text) {
    if (const size_t named = kNamed.find(c); named != kNamed.npos) {
      out += {'\\', kNames[named]};
    } else if (static_cast<uint8_t>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

Task<bool> read_json(Stream& in, const Put& put) {
  Scan scan;
  bool any = false;
  for (;;) {
    const std::string_view value = in.rest().substr(0, scan.read(in.rest()));
    any |= !value.empty();
    put(value);
    in.skip(value.size());
    if (scan.ended()) co_return any;
    const bool more = co_await in;
    if (!more) co_return any&& scan.may_end();
  }
}

Task<bool> read_json_string(Stream& in, std::string& to) {
  std::string text;
  const Put put = [&](std::string_view piece) { text += piece; };
  if (!co_await read_json(in, put)) co_return false;
  const auto value = nlohmann::json::parse(text, nullptr, false);
  if (!value.is_string()) co_return false;
  to = value.get<std::string>();
  co_return true;
}

}  // namespace juno::dialect
