// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "tokenizer/decoder.h"
#include "tokenizer/scheme.h"
#include "tokenizer/specials.h"
#include "tokenizer/unicode.h"

namespace juno::tokenizer {
namespace {

constexpr SchemeEntry kSchemes[] = {
    {"gpt2", Spelling::kByteLevel, make_bpe},
    {"llama", Spelling::kSentencePiece, make_sentencepiece},
};

const SchemeEntry& scheme_of(const VocabularySource& source) {
  std::string known;
  for (const SchemeEntry& entry : kSchemes) {
    if (entry.model == source.model) return entry;
    known += fmt::format(" {}", entry.model);
  }
  fail(Code::kBadData, "[tokenizer] tokenizer.ggml.model: unknown kind of tokenizer \"{}\"; known are{}",
       to_utf8(source.model), known);
}

// SentencePiece files may leave out the ids that its models have always had.
VocabularySource with_customary_ids(const VocabularySource& source, Spelling spelling) {
  VocabularySource full = source;
  if (spelling != Spelling::kSentencePiece) return full;
  for (uint32_t id = 0; id < std::min<size_t>(4, source.tokens.size()); ++id) {
    if (!full.bos && source.tokens[id] == "<s>") full.bos = id;
    if (!full.eos && source.tokens[id] == "</s>") full.eos = id;
    if (!full.unk && source.tokens[id] == "<unk>") full.unk = id;
  }
  return full;
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

std::span<const SchemeEntry> schemes() { return kSchemes; }

Tokenizer::Tokenizer(const VocabularySource& source, const Log& log) {
  const SchemeEntry& entry = scheme_of(source);
  vocabulary_ = std::make_unique<Vocabulary>(with_customary_ids(source, entry.spelling), entry.spelling, log);
  scheme_ = entry.make(source, *vocabulary_, log);
  specials_ = std::make_unique<Specials>(*vocabulary_, source.name, log);
}

Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const VocabularySource& source, const Log& log) {
  return guard([&] { return Tokenizer(source, log); });
}

Result<Tokenizer> Tokenizer::load(const gguf::Metadata& metadata, const Log& log) {
  return read_vocabulary(metadata).and_then(
      [&](const VocabularySource& source) { return load(source, log); });
}

// trusted_end: position → where the trusted text around it ends, or anything up to the position itself if
// there is none. Asked with increasing positions.
template <class TrustedEnd>
std::vector<int32_t> Tokenizer::encode_with(std::string_view text, bool add_special,
                                            TrustedEnd&& trusted_end) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 2);
  Scratch scratch;
  bool fresh = true;
  for (size_t at = 0; at < text.size();) {
    const SpecialMatch match = specials_->next(text, at, trusted_end);
    while (at < match.begin) {
      const std::string_view part = text.substr(at, std::min(match.begin - at, kLongestText));
      scheme_->encode(part, fresh, scratch, ids);
      at += part.size();
      fresh = false;
    }
    if (match.id == kNoToken) break;
    ids.push_back(match.id);
    fresh = true;
    at = match.begin + match.size;
    if (specials_->strips_right(match.id)) {
      while (at < text.size() && is_blank(text[at])) ++at;
    }
  }
  if (!add_special) return ids;
  const SpecialIds& special = vocabulary_->special();
  const bool has_bos = special.bos && !ids.empty() && ids.front() == *special.bos;
  if (scheme_->add_bos && special.bos && !has_bos) ids.insert(ids.begin(), *special.bos);
  if (scheme_->add_eos && special.eos) ids.push_back(*special.eos);
  return ids;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const size_t end = options.parse_special ? text.size() : 0;
  return encode_with(text, options.add_special, [end](size_t) { return end; });
}

std::vector<int32_t> Tokenizer::encode_segments(std::span<const Segment> segments,
                                                EncodeOptions options) const {
  std::string text;
  struct Range {
    size_t begin, end;
  };
  std::vector<Range> trusted;  // neighbours joined
  for (const Segment& segment : segments) {
    if (segment.trusted && !segment.text.empty()) {
      if (trusted.empty() || trusted.back().end != text.size()) trusted.push_back({text.size(), text.size()});
      trusted.back().end += segment.text.size();
    }
    text += segment.text;
  }
  size_t next = 0;
  return encode_with(text, options.add_special, [&](size_t at) -> size_t {
    while (next < trusted.size() && trusted[next].end <= at) ++next;
    return next < trusted.size() && trusted[next].begin <= at ? trusted[next].end : 0;
  });
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool special) const {
  std::string bytes;
  bool first = scheme_->strips_first_blank;
  for (const int32_t id : ids) bytes += piece_in_text(*this, id, special, first);
  return bytes;
}

bool Tokenizer::is_end(int32_t id) const {
  return std::binary_search(end_tokens().begin(), end_tokens().end(), id);
}
bool Tokenizer::adds_bos() const { return scheme_->add_bos && special().bos; }
bool Tokenizer::strips_first_blank() const { return scheme_->strips_first_blank; }

Result<void> Tokenizer::fit_embedding(int64_t rows, const Log& log) const {
  return guard([&] {
    if (size() > rows) {
      fail(Code::kBadData, "[tokenizer] token_embd.weight has {} rows for {} tokens (tokenizer.ggml.tokens)",
           rows, size());
    }
    if (size() < rows) {
      log.warn(
          "[tokenizer] token_embd.weight has {} rows, tokenizer.ggml.tokens {} tokens: ids from {} on are "
          "never sampled",
          rows, size(), size());
    }
  });
}

}  // namespace juno::tokenizer
