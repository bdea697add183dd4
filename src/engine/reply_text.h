// SPDX-License-Identifier: Apache-2.0
// From the tokens of a reply to its text: whole characters, nothing of a stop string.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/stop.h"
#include "tokenizer/decoder.h"

namespace juno::engine {

class ReplyText {
 public:
  using OnText = std::function<void(std::string_view)>;

  // The reply continues a prompt, so a leading blank is text. The tokenizer outlives this. on_text may be
  // empty. Control tokens are no text, but for those of `keep`.
  ReplyText(const tokenizer::Tokenizer& tokenizer, std::vector<std::string> stops, OnText on_text,
            std::vector<int32_t> keep = {});

  // False once a stop string is complete.
  bool push(int32_t id);
  // No more tokens come.
  void finish();

  bool stopped() const { return matcher_.stopped(); }
  const std::optional<std::string>& stop() const { return matcher_.stop(); }  // that was found
  // Bytes of whole characters so far, what is held back for a stop string included.
  size_t decoded() const { return decoded_; }
  bool whole() const { return decoder_.whole(); }    // no character is waiting for its end
  const std::string& text() const { return text_; }  // all of it; on_text was given the same in pieces

 private:
  bool match(std::string_view characters);
  void emit(size_t from);

  tokenizer::Decoder decoder_;
  StopMatcher matcher_;
  OnText on_text_;
  std::string text_;
  size_t decoded_ = 0;
};

}  // namespace juno::engine
