// SPDX-License-Identifier: Apache-2.0
// SentencePiece's BPE: characters merge into whatever token their texts join to, the best score first; what
// remains unknown becomes bytes.
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "tokenizer/scheme.h"
#include "tokenizer/unicode.h"

namespace juno::tokenizer {
namespace {

class SentencePiece final : public Scheme {
 public:
  SentencePiece(const VocabularySource& source, const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    if (!source.scores) fail(Code::kBadData, "[tokenizer] the key tokenizer.ggml.scores is missing");
    rank(*source.scores);
    add_bos = source.add_bos.value_or(true);
    add_eos = source.add_eos.value_or(false);
    add_blank_ = strips_first_blank = source.add_space_prefix.value_or(true);
    squeeze_blanks_ = source.remove_extra_whitespaces.value_or(false);
    for (int b = 0; b < 256; ++b)
      byte_fallback_ &= vocabulary.byte_token(static_cast<uint8_t>(b)) != kNoToken;
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      has_unused_ |= vocabulary.type(id) == TokenType::kUnused;
      const std::string_view piece = vocabulary.piece(id);
      for (size_t i = 1; i < piece.size(); ++i) {
        if (piece[i] == ' ') joins_blank_[static_cast<uint8_t>(piece[i - 1])] = true;
      }
    }
  }

  void encode(std::string_view raw, bool fresh, Scratch& scratch, std::vector<int32_t>& ids) const override {
    std::string& text = scratch.text;
    text.assign(fresh && add_blank_ ? " " : "");
    append_text(text, raw);
    if (text.empty()) return;
    Parts parts;
    bool after_unknown = false;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view word = rest.substr(0, word_size(rest));
      rest.remove_prefix(word.size());
      split(word, scratch.symbols);
      merge(scratch, ranks_, [&](const Symbol& a, const Symbol& b) { return find(word, a, b, parts); });
      for (const Symbol& symbol : scratch.symbols) {
        after_unknown = emit(word.substr(symbol.begin, symbol.size), parts, after_unknown, ids);
      }
    }
  }

 private:
  using Parts =
      std::unordered_map<int32_t, uint32_t>;  // unused token → bytes of the left part it was merged from

  // Equal scores share a rank, the highest score has rank 0.
  void rank(const std::vector<float>& scores) {
    for (size_t i = 0; i < scores.size(); ++i) {
      if (std::isnan(scores[i]))
        fail(Code::kBadData, "[tokenizer] tokenizer.ggml.scores: item {} is not a number", i);
    }
    std::vector<uint32_t> order(scores.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
    const auto higher = [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; };
    if (!std::is_sorted(order.begin(), order.end(), higher)) std::sort(order.begin(), order.end(), higher);
    rank_of_.resize(scores.size());
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && scores[order[i]] != scores[order[i - 1]]) ++ranks_;
      rank_of_[order[i]] = ranks_;
    }
    ++ranks_;
  }

  // Blanks as tokens spell them; several in a row, and those at the ends, only where the file keeps them.
  void append_text(std::string& text, std::string_view raw) const {
    const size_t begin = text.size();
    append_blanks(text, raw);
    if (!squeeze_blanks_) return;
    const auto twice = [](char a, char b) { return a == ' ' && b == ' '; };
    text.erase(std::unique(text.begin() + static_cast<ptrdiff_t>(begin ? begin - 1 : 0), text.end(), twice),
               text.end());
    if (!text.empty() && text.back() == ' ') text.pop_back();
  }

  // The text may be cut before a blank that no token has behind such a byte: no merge could cross there. That
  // keeps words short.
  size_t word_size(std::string_view text) const {
    size_t i = 1;
    while (i < text.size() && (text[i] != ' ' || joins_blank_[static_cast<uint8_t>(text[i - 1])])) ++i;
    return i;
  }

  static void split(std::string_view text, std::vector<Symbol>& symbols) {
    symbols.clear();
    for (uint32_t i = 0; i < text.size();) {
      const uint32_t size = first_char(text.substr(i)).size;
      symbols.push_back({kNoToken, i, size});
      i += size;
    }
  }

  Merge find(std::string_view text, const Symbol& a, const Symbol& b, Parts& parts) const {
    const uint32_t size = a.size + b.size;
    if (size > vocabulary_.longest()) return {};
    const int32_t id = vocabulary_.find(text.substr(a.begin, size));
    if (id == kNoToken) return {};
    if (has_unused_ && vocabulary_.type(id) == TokenType::kUnused) parts[id] = a.size;
    return {rank_of_[static_cast<size_t>(id)], id};
  }

  // Appends the ids of one piece; an unused token is taken apart again as it was merged. Returns whether the
  // last id is the unknown token: a run of unknown pieces is one.
  bool emit(std::string_view piece, const Parts& parts, bool after_unknown, std::vector<int32_t>& ids) const {
    std::vector<std::string_view> stack{piece};
    while (!stack.empty()) {
      const std::string_view top = stack.back();
      stack.pop_back();
      const int32_t id = vocabulary_.find(top);
      const auto part = has_unused_ && id != kNoToken && vocabulary_.type(id) == TokenType::kUnused
                            ? parts.find(id)
                            : parts.end();
      if (part != parts.end()) {
        stack.push_back(top.substr(part->second));
        stack.push_back(top.substr(0, part->second));
      } else if (id != kNoToken) {
        ids.push_back(id);
        after_unknown = false;
      } else if (byte_fallback_) {
        for (const char c : top) ids.push_back(vocabulary_.byte_token(static_cast<uint8_t>(c)));
      } else {
        if (!after_unknown) ids.push_back(*vocabulary_.special().unk);
        after_unknown = true;
      }
    }
    return after_unknown;
  }

  const Vocabulary& vocabulary_;
  std::vector<uint32_t> rank_of_;  // [tokens]
  uint32_t ranks_ = 0;
  std::array<bool, 256> joins_blank_{};  // by the byte before the blank
  bool add_blank_ = true, squeeze_blanks_ = false, byte_fallback_ = true, has_unused_ = false;
};

}  // namespace

std::unique_ptr<Scheme> make_sentencepiece(const VocabularySource& source, const Vocabulary& vocabulary,
                                           const Log&) {
  return std::make_unique<SentencePiece>(source, vocabulary);
}

}  // namespace juno::tokenizer
