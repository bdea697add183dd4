// SPDX-License-Identifier: Apache-2.0
#include "grammar/syntax.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace juno::grammar {

NodeId build(Builder& to, const Alternatives& alternatives, const Spell& spell, NodeId next) {
  NodeId all = to.never();
  for (auto sequence = alternatives.rbegin(); sequence != alternatives.rend(); ++sequence) {
    NodeId start = next;
    for (auto item = sequence->rbegin(); item != sequence->rend(); ++item) {
      const auto one = [&](NodeId then) {
        return item->rule >= 0 ? to.call(item->rule, then) : spell(item->chars, then);
      };
      start = to.repeat(one, item->min, item->max, start);
    }
    all = to.either(start, all);
  }
  return all;
}

bool Cursor::accept(char c) {
  if (done() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool Cursor::accept(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

uint32_t Cursor::character() {
  const Char c = first_char(text_.substr(at_));
  const bool valid = c.state == Char::State::kValid;
  const uint32_t code = valid ? c.code : static_cast<uint8_t>(text_[at_]);
  at_ += valid ? c.size : 1;
  return code;
}

std::optional<uint32_t> Cursor::hexadecimal(int digits) {
  uint32_t value = 0;
  const char* const begin = text_.data() + at_;
  if (text_.size() - at_ < static_cast<size_t>(digits)) return {};
  const auto [end, error] = std::from_chars(begin, begin + digits, value, 16);
  if (error != std::errc() || end != begin + digits) return {};
  at_ += digits;
  return value;
}

std::optional<int32_t> Cursor::number() {
  int32_t value = 0;
  const char* const begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc() || value < 0 || value > kMaxCount) return {};
  at_ += static_cast<size_t>(end - begin);
  return value;
}

int Cursor::line() const {
  return static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n')) + 1;
}

int Cursor::column() const {
  const size_t newline = text_.substr(0, at_).rfind('\n');
  return static_cast<int>(at_ - (newline == std::string_view::npos ? 0 : newline + 1)) + 1;
}

}  // namespace juno::grammar
