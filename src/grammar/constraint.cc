// SPDX-License-Identifier: Apache-2.0
#include "grammar/constraint.h"

#include <algorithm>
#include <tuple>

namespace juno::grammar {

void VocabularyBytes::arrange() {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const Token& a, const Token& b) { return std::tie(a.bytes, a.id) < std::tie(b.bytes, b.id); });
  std::string_view before;
  for (Token& t : tokens_) {
    const auto [differs, unused] =
        std::mismatch(before.begin(), before.end(), t.bytes.begin(), t.bytes.end());
    t.shared = static_cast<int32_t>(differs - before.begin());
    longest_ = std::max(longest_, static_cast<int>(t.bytes.size()));
    before = t.bytes;
  }
  places_.assign(static_cast<size_t>(size_), -1);
  for (size_t i = 0; i < tokens_.size(); ++i)
    places_[static_cast<size_t>(tokens_[i].id)] = static_cast<int32_t>(i);
}

Constraint::Constraint(Automaton automaton, std::shared_ptr<const VocabularyBytes> vocabulary)
    : Constraint(std::make_shared<const Automaton>(std::move(automaton)), std::move(vocabulary)) {}

Constraint::Constraint(std::shared_ptr<const Automaton> automaton,
                       std::shared_ptr<const VocabularyBytes> vocabulary)
    : automaton_(std::move(automaton)), matcher_(*automaton_), vocabulary_(std::move(vocabulary)) {}

const Mask& Constraint::mask(const State& state) {
  const size_t mask_bytes = masks_.size() * (static_cast<size_t>(vocabulary_->size()) / 8 + 1);
  if (states_.size() > kMaxRemembered || mask_bytes > kMaxMaskBytes) {
    numbers_.clear();
    states_.clear();
    steps_.clear();
    masks_.clear();
  }
  const int32_t number = number_of(matcher_.nearby(state, vocabulary_->longest()));
  const auto [found, is_new] = masks_.try_emplace(number);
  if (is_new) found->second = find(number);
  return found->second;
}

int32_t Constraint::number_of(State&& state) {
  if (state.dead()) return kDead;
  const auto [found, is_new] = numbers_.try_emplace(key_of(state), static_cast<int32_t>(states_.size()));
  if (is_new) {
    states_.push_back(std::move(state));
    steps_.emplace_back().fill(kUnknown);
  }
  return found->second;
}

int32_t Constraint::step(int32_t state, uint8_t byte) {
  if (steps_[state][byte] == kUnknown) {
    const int32_t next = number_of(matcher_.step(states_[state], byte));
    steps_[state][byte] = next;
  }
  return steps_[state][byte];
}

// Walks the tokens in order; what is known of the bytes shared with the token before is kept.
Mask Constraint::find(int32_t state) {
  Mask mask;
  mask.bits.resize((static_cast<size_t>(vocabulary_->size()) + 63) / 64);
  std::vector<int32_t> after(static_cast<size_t>(vocabulary_->longest()) + 1);  // [bytes read]
  after[0] = state;
  size_t known = 0;  // bytes of the token before that were read, the last of them perhaps in vain
  for (const auto& token : vocabulary_->tokens()) {
    size_t read = std::min(known, static_cast<size_t>(token.shared));
    while (read < token.bytes.size() && after[read] != kDead) {
      after[read + 1] = step(after[read], static_cast<uint8_t>(token.bytes[read]));
      ++read;
    }
    known = read;
    if (after[read] == kDead) continue;
    mask.bits[static_cast<size_t>(token.id) / 64] |= uint64_t{1} << (token.id % 64);
    mask.any = true;
  }
  return mask;
}

}  // namespace juno::grammar
