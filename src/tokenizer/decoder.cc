// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/decoder.h"

#include <algorithm>

#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

namespace juno::tokenizer {

std::string_view piece_in_text(const Tokenizer& tokenizer, int32_t id, bool special, bool& first) {
  if (tokenizer.is_control(id)) return special ? tokenizer.piece(id) : std::string_view();
  std::string_view piece = tokenizer.piece(id);
  if (first && !piece.empty()) {
    if (piece[0] == ' ') piece.remove_prefix(1);
    first = false;
  }
  return piece;
}

Decoder::Decoder(const Tokenizer& tokenizer, bool special, bool continues)
    : tokenizer_(tokenizer), special_(special), first_(tokenizer.strips_first_blank() && !continues) {}

std::string Decoder::push(int32_t id) {
  const bool special = special_ || std::ranges::find(shown_, id) != shown_.end();
  waiting_ += piece_in_text(tokenizer_, id, special, first_);
  std::string text;
  std::string_view rest = waiting_;
  while (!rest.empty()) {
    const Char c = first_char(rest);
    if (c.state == Char::State::kCut) break;
    if (c.state == Char::State::kValid) {
      text += rest.substr(0, c.size);
    } else {
      append_utf8(text, kReplacement);
    }
    rest.remove_prefix(c.size);
  }
  waiting_.erase(0, waiting_.size() - rest.size());
  return text;
}

std::string Decoder::flush() {
  std::string text;
  if (!waiting_.empty()) append_utf8(text, kReplacement);
  waiting_.clear();
  return text;
}

}  // namespace juno::tokenizer
