// SPDX-License-Identifier: Apache-2.0
// From the tokens of one choice to Deltas: whole characters, with the tokens that they end.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "api/service.h"
#include "engine/reply_text.h"

namespace juno::api {

class ReplyPieces {
 public:
  // Of Work::stop and Work::keep_control; scored: Deltas have scores. The tokenizer outlives this.
  ReplyPieces(const tokenizer::Tokenizer& tokenizer, int choice, const Work& work);

  // What this token makes certain; none while all of it is held back. End tokens are not pushed.
  std::optional<Delta> push(TokenScore token);
  // What was held back; no more tokens come. A token whose text begins in a stop string is left out.
  std::optional<Delta> finish();

  bool stopped() const { return text_.stopped(); }
  const std::optional<std::string>& stop() const { return text_.stop(); }

 private:
  struct Waiting {
    TokenScore token;
    size_t begin;               // in the text, of the character that its text is in
    std::optional<size_t> end;  // known once its last character is whole
  };
  std::optional<Delta> collect(bool last);

  engine::ReplyText text_;
  const int choice_;
  const bool scored_;
  std::deque<Waiting> waiting_;
  size_t sent_ = 0;  // bytes of the text
};

}  // namespace juno::api
