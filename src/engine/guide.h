// SPDX-License-Identifier: Apache-2.0
// Holds a reply to a grammar: which token may come next, and whether the reply may end.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "grammar/constraint.h"
#include "tokenizer/tokenizer.h"

namespace juno::engine {

// Where one reply stands in its grammar. A copy goes on from there by itself; copies share what was found out
// about the grammar, so they belong to one thread. Grammars that are too ambiguous throw Error.
class Guide {
 public:
  explicit Guide(std::shared_ptr<grammar::Constraint> constraint)
      : constraint_(std::move(constraint)), state_(constraint_->start()) {}

  // Valid until a guide of the same grammar is asked again.
  const grammar::Mask& mask() const { return constraint_->mask(state_); }
  bool may_end() const { return state_.complete(); }
  bool over() const { return may_end() && !mask().any; }  // nothing may follow
  void accept(int32_t id) { state_ = constraint_->advance(state_, id); }

 private:
  std::shared_ptr<grammar::Constraint> constraint_;
  grammar::State state_;
};

// Makes guides over one vocabulary and remembers what it knows of the last grammars. One thread at a time.
class Guides {
 public:
  explicit Guides(const tokenizer::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // keep_control: the control tokens that may stand for their text; no other ever comes.
  Guide begin(std::shared_ptr<const grammar::Automaton> automaton, std::vector<int32_t> keep_control = {});

 private:
  using Vocabulary = std::shared_ptr<const grammar::VocabularyBytes>;
  struct Known {
    std::shared_ptr<const grammar::Automaton> automaton;
    Vocabulary vocabulary;
    std::shared_ptr<grammar::Constraint> constraint;
  };
  static constexpr size_t kMostKnown = 16, kMostVocabularies = 4;

  Vocabulary vocabulary(std::vector<int32_t> keep_control);

  const tokenizer::Tokenizer& tokenizer_;
  std::map<std::vector<int32_t>, Vocabulary> vocabularies_;
  std::vector<Known> known_;  // the newest last
};

}  // namespace juno::engine
