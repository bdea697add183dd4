// SPDX-License-Identifier: Apache-2.0
// What turns ordinary text into ids: one implementation for each tokenizer.ggml.model.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "tokenizer/merge.h"
#include "tokenizer/source.h"
#include "tokenizer/vocabulary.h"

namespace juno::tokenizer {

class Scheme {
 public:
  virtual ~Scheme() = default;

  // Appends the ids of a text that holds no special tokens. `fresh`: the text begins the input or follows a
  // special token. At most kLongestText bytes.
  virtual void encode(std::string_view text, bool fresh, Scratch& scratch,
                      std::vector<int32_t>& ids) const = 0;

  bool add_bos = false, add_eos = false;  // as the file asks, or else the scheme's own habit
  bool strips_first_blank = false;        // decoding drops the blank that encoding put in front
};

inline constexpr size_t kLongestText = size_t(1) << 30;

struct SchemeEntry {
  std::string_view model;  // tokenizer.ggml.model
  Spelling spelling;
  // Throws Error. The vocabulary outlives the scheme.
  std::unique_ptr<Scheme> (*make)(const VocabularySource& source, const Vocabulary& vocabulary,
                                  const Log& log);
};

std::span<const SchemeEntry> schemes();  // THE LIST

std::unique_ptr<Scheme> make_bpe(const VocabularySource& source, const Vocabulary& vocabulary,
                                 const Log& log);
std::unique_ptr<Scheme> make_sentencepiece(const VocabularySource& source, const Vocabulary& vocabulary,
                                           const Log& log);

}  // namespace juno::tokenizer
