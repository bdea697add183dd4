// SPDX-License-Identifier: Apache-2.0
// Tokenizer: text to token ids and back, as the model's file says. Immutable: any number of threads may use
// one.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "tokenizer/segment.h"
#include "tokenizer/source.h"
#include "tokenizer/vocabulary.h"

namespace juno::tokenizer {

class Scheme;
class Specials;

struct EncodeOptions {
  bool parse_special =
      false;  // text of control tokens becomes these; user-defined tokens are matched regardless
  bool add_special = false;  // BOS before, EOS after, where the file asks for it; never a second BOS
};

class Tokenizer {
 public:
  // Errors name the key at fault (kBadData); what can be lived with is said to the log.
  static Result<Tokenizer> load(const VocabularySource& source, const Log& log);
  static Result<Tokenizer> load(const gguf::Metadata& metadata, const Log& log);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Any bytes are text; what is not UTF-8 becomes byte tokens where the vocabulary has them.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  // The ids of the joined text, but a control token must lie in trusted segments. options.parse_special is
  // not asked.
  std::vector<int32_t> encode_segments(std::span<const Segment> segments, EncodeOptions options = {}) const;

  // The bytes of the ids, not always UTF-8 (see decoder.h). Control tokens are left out unless `special`; ids
  // that are none have no bytes.
  std::string decode(std::span<const int32_t> ids, bool special = false) const;

  int32_t size() const { return vocabulary_->size(); }
  std::string_view piece(int32_t id) const { return vocabulary_->piece(id); }  // a token's bytes
  bool is_control(int32_t id) const { return vocabulary_->is_control(id); }
  bool is_end(int32_t id) const;  // a reply ends with any of these
  std::span<const int32_t> end_tokens() const { return vocabulary_->end_tokens(); }
  const SpecialIds& special() const { return vocabulary_->special(); }
  bool adds_bos() const;
  bool strips_first_blank() const;  // decoding drops the blank that encoding put in front

  // Whether an embedding of `rows` rows fits: an error when it has too few, a warning when some are never
  // used.
  Result<void> fit_embedding(int64_t rows, const Log& log) const;

 private:
  Tokenizer(const VocabularySource& source, const Log& log);
  template <class TrustedEnd>
  std::vector<int32_t> encode_with(std::string_view text, bool add_special, TrustedEnd&& trusted_end) const;

  std::unique_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<const Scheme> scheme_;
  std::unique_ptr<const Specials> specials_;
};

}  // namespace juno::tokenizer
