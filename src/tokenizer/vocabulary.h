// SPDX-License-Identifier: Apache-2.0
// Vocabulary: the tokens of a model, their bytes and kinds, and the way from bytes to a token. Immutable.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "tokenizer/source.h"

namespace juno::tokenizer {

inline constexpr int32_t kNoToken = -1;

enum class TokenType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// How the characters of a normal token stand for bytes.
enum class Spelling {
  kByteLevel,      // GPT-2's printable stand-ins, one for each byte
  kSentencePiece,  // U+2581 for a blank, <0x41> for the byte 41 where the type says so
};

struct SpecialIds {
  std::optional<int32_t> bos, eos, eot, eom, unk, pad;
};

class Vocabulary {
 public:
  // Throws Error, naming the key, for what cannot be used; warns of what can.
  Vocabulary(const VocabularySource& source, Spelling spelling, const Log& log);

  int32_t size() const { return static_cast<int32_t>(types_.size()); }
  bool has(int32_t id) const { return id >= 0 && id < size(); }

  // The bytes a token stands for; a control or user-defined token's own text. Empty for an id that is none.
  std::string_view piece(int32_t id) const;
  TokenType type(int32_t id) const { return types_[static_cast<size_t>(id)]; }
  bool is_control(int32_t id) const;  // a control token or the unknown token

  // The token that text can become by merging: never a control, unknown or byte token. kNoToken if there is
  // none.
  int32_t find(std::string_view bytes) const;
  int32_t byte_token(uint8_t byte) const { return byte_tokens_[byte]; }
  size_t longest() const { return longest_; }  // bytes of the longest token that find() knows

  const SpecialIds& special() const { return special_; }
  const std::vector<int32_t>& end_tokens() const { return end_tokens_; }  // sorted; any of them ends a reply

 private:
  void read_types(const VocabularySource& source);
  void spell(const VocabularySource& source, Spelling spelling);
  void index(const Log& log);
  void read_special_ids(const VocabularySource& source, const Log& log);
  void find_end_tokens(const Log& log);
  void find_byte_tokens(const VocabularySource& source, Spelling spelling, const Log& log);
  size_t find_slot(std::string_view bytes, uint64_t hash) const;

  std::string bytes_;             // of all pieces, joined
  std::vector<uint32_t> starts_;  // [tokens + 1], into bytes_
  std::vector<TokenType> types_;
  struct Slot {
    uint32_t tag = 0;  // more of the hash, so that a piece is read only when it is the right one
    int32_t id = kNoToken;
  };
  std::vector<Slot> slots_;  // open addressing by the hash of a piece; a power of two, at most half full
  size_t longest_ = 0;
  int32_t byte_tokens_[256];
  SpecialIds special_;
  std::vector<int32_t> end_tokens_;
};

// The bytes of a byte-level spelling, appended; false when it is not UTF-8. Characters that stand for no byte
// stand for themselves.
bool append_byte_level(std::string& bytes, std::string_view spelled);

// The text with a blank for each U+2581, appended.
void append_blanks(std::string& bytes, std::string_view text);

}  // namespace juno::tokenizer
