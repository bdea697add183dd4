// SPDX-License-Identifier: Apache-2.0
// Which tokens may come next: a grammar held against a vocabulary.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/matcher.h"

namespace juno::grammar {

// The bytes of every token that may appear in a constrained text, in order, so that tokens which begin alike
// are met together.
class VocabularyBytes {
 public:
  struct Token {
    std::string bytes;
    int32_t id;
    int32_t shared;  // bytes shared with the token before
  };

  // bytes(id): those of token `id`; empty for tokens that may never appear, such as control tokens.
  template <class BytesOf>
  VocabularyBytes(int32_t size, BytesOf&& bytes) : size_(size) {
    for (int32_t id = 0; id < size; ++id) {
      if (std::string text(bytes(id)); !text.empty()) tokens_.push_back({std::move(text), id, 0});
    }
    arrange();
  }

  int32_t size() const { return size_; }
  std::string_view bytes(int32_t id) const {
    const int32_t at = places_[static_cast<size_t>(id)];
    return at < 0 ? std::string_view() : tokens_[static_cast<size_t>(at)].bytes;
  }
  int longest() const { return longest_; }  // bytes
  std::span<const Token> tokens() const { return tokens_; }

 private:
  void arrange();

  int32_t size_;
  int longest_ = 0;
  std::vector<Token> tokens_;
  std::vector<int32_t> places_;  // [size], where in tokens_; -1: not there
};

// Token `id` is allowed where bit id is set.
struct Mask {
  std::vector<uint64_t> bits;
  bool any = false;
  bool allows(int32_t id) const { return bits[static_cast<size_t>(id) / 64] >> (id % 64) & 1; }
};

// One grammar and one vocabulary, for any number of texts. Remembers what it found out; one thread at a time.
class Constraint {
 public:
  Constraint(Automaton automaton, std::shared_ptr<const VocabularyBytes> vocabulary);
  Constraint(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const VocabularyBytes> vocabulary);

  State start() const { return matcher_.start(); }
  // After the bytes of a token that the mask allowed.
  State advance(const State& state, std::string_view bytes) const { return matcher_.read(state, bytes); }
  // After the bytes of token `id`.
  State advance(const State& state, int32_t id) const { return advance(state, vocabulary_->bytes(id)); }
  // Valid until the next call.
  const Mask& mask(const State& state);

  static constexpr size_t kMaxRemembered = 1 << 14;  // states: 16 MiB of steps
  static constexpr size_t kMaxMaskBytes = 16 << 20;  // of all masks

 private:
  static constexpr int32_t kUnknown = -2, kDead = -1;

  int32_t number_of(State&& state);
  int32_t step(int32_t state, uint8_t byte);
  Mask find(int32_t state);

  const std::shared_ptr<const Automaton> automaton_;
  const Matcher matcher_;
  const std::shared_ptr<const VocabularyBytes> vocabulary_;
  std::unordered_map<std::string, int32_t> numbers_;
  std::deque<State> states_;
  std::deque<std::array<int32_t, 256>> steps_;
  std::unordered_map<int32_t, Mask> masks_;
};

}  // namespace juno::grammar
