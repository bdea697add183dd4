// SPDX-License-Identifier: Apache-2.0
#include "engine/guide.h"

#include <algorithm>

namespace juno::engine {

Guide Guides::begin(std::shared_ptr<const grammar::Automaton> automaton, std::vector<int32_t> keep_control) {
  Vocabulary words = vocabulary(std::move(keep_control));
  const auto found = std::ranges::find_if(
      known_, [&](const Known& k) { return k.automaton == automaton && k.vocabulary == words; });
  if (found != known_.end()) {
    std::rotate(found, found + 1, known_.end());
  } else {
    if (known_.size() == kMostKnown) known_.erase(known_.begin());
    known_.push_back({automaton, words, std::make_shared<grammar::Constraint>(automaton, words)});
  }
  return Guide(known_.back().constraint);
}

Guides::Vocabulary Guides::vocabulary(std::vector<int32_t> keep_control) {
  std::ranges::sort(keep_control);
  if (const auto found = vocabularies_.find(keep_control); found != vocabularies_.end()) return found->second;
  if (vocabularies_.size() == kMostVocabularies) vocabularies_.clear();
  const auto bytes = [&](int32_t id) {
    const bool hidden = tokenizer_.is_control(id) && !std::ranges::binary_search(keep_control, id);
    return hidden ? std::string_view() : tokenizer_.piece(id);
  };
  auto made = std::make_shared<const grammar::VocabularyBytes>(tokenizer_.size(), bytes);
  vocabularies_.emplace(std::move(keep_control), made);
  return made;
}

}  // namespace juno::engine
