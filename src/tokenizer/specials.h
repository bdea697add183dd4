// SPDX-License-Identifier: Apache-2.0
// Control and user-defined tokens, found in text before it is cut into words.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace juno::tokenizer {

struct SpecialMatch {
  int32_t id = kNoToken;
  size_t begin = 0, size = 0;
};

class Specials {
 public:
  // `model_name`: general.name, which is how files of Phi-3 are known to strip blanks after control tokens.
  Specials(const Vocabulary& vocabulary, std::string_view model_name, const Log& log);

  // The first token at or after `from`, the longest of those that begin there. A control token counts only if
  // it ends at or before what trusted_end(begin) returns. id kNoToken and begin = text.size() when there is
  // none.
  template <class TrustedEnd>
  SpecialMatch next(std::string_view text, size_t from, TrustedEnd&& trusted_end) const {
    for (size_t i = from; i < text.size(); ++i) {
      if (!begins_[static_cast<uint8_t>(text[i])]) continue;
      const SpecialMatch match = longest_at(text, i, trusted_end(i));
      if (match.id != kNoToken) return match;
    }
    return {kNoToken, text.size(), 0};
  }

  bool strips_right(int32_t id) const;  // white space after it belongs to it

 private:
  SpecialMatch longest_at(std::string_view text, size_t begin, size_t control_end) const;

  struct Entry {
    std::string_view text;
    int32_t id;
    bool control;
  };
  std::vector<Entry> entries_;  // sorted by text, a prefix before what it begins
  std::array<bool, 256> begins_{};
  std::vector<int32_t> strip_right_;  // sorted
};

}  // namespace juno::tokenizer
