// SPDX-License-Identifier: Apache-2.0
// How byte-level BPE cuts text into words before merging. Each scheme is one line of a table; all are
// scanners that look at a character a bounded number of times and keep nothing but the rest of the text.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace juno::tokenizer {

// The length of the first piece of a text that is not empty; 1 … text.size().
using Cut = size_t (*)(std::string_view text);

struct Pretokenizer {
  std::string_view name;      // as in tokenizer.ggml.pre
  std::array<Cut, 4> stages;  // each cuts the pieces of the one before it; null ends the list
  bool whole_words = false;   // a word that is a token is not merged ("ignore_merges")
  bool add_bos = false;       // unless tokenizer.ggml.add_bos_token says otherwise
};

std::span<const Pretokenizer> pretokenizers();                 // THE LIST
const Pretokenizer* find_pretokenizer(std::string_view name);  // null for an unknown name

// The words of a text, one after another; joined they are the text.
class Words {
 public:
  Words(const Pretokenizer& scheme, std::string_view text);
  std::string_view next();  // empty at the end

 private:
  const Pretokenizer& scheme_;
  size_t stages_ = 0;
  std::array<std::string_view, 4> rest_;  // of the piece that each stage is cutting
};

}  // namespace juno::tokenizer
