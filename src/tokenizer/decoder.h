// SPDX-License-Identifier: Apache-2.0
// Decoder: ids to text as they come. Every piece it hands out is UTF-8 by itself, and joined they are
// to_utf8(tokenizer.decode(all ids)).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace juno::tokenizer {

class Tokenizer;

class Decoder {
 public:
  // `special`: control tokens are written out instead of left out. The tokenizer outlives the decoder.
  // `continues`: the ids follow others, so a leading blank is text.
  explicit Decoder(const Tokenizer& tokenizer, bool special = false, bool continues = false);

  // These control tokens are written out in any case.
  void show(std::vector<int32_t> control) { shown_ = std::move(control); }

  // The text that is certain now: a character that is not yet whole waits, bytes that can no longer become
  // one are U+FFFD. Empty for a token without text and for an id that is none.
  std::string push(int32_t id);

  // What still waits, which is no character: U+FFFD or nothing. The decoder may be used again.
  std::string flush();

  // No character is waiting for its end.
  bool whole() const { return waiting_.empty(); }

 private:
  const Tokenizer& tokenizer_;
  bool special_, first_;
  std::vector<int32_t> shown_;
  std::string waiting_;  // the beginning of a character, at most 3 bytes
};

// The bytes that a token adds to a text. first: whether a blank in front is to be dropped; cleared by the
// first token that has text.
std::string_view piece_in_text(const Tokenizer& tokenizer, int32_t id, bool special, bool& first);

}  // namespace juno::tokenizer
