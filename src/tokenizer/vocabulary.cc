// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "tokenizer/unicode.h"

namespace juno::tokenizer {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kBlankMark = "\xE2\x96\x81";  // U+2581

// GPT-2 writes a byte that is no visible Latin-1 character as the next unused one from U+0100 on.
constexpr std::array<int16_t, 324> byte_of_code() {
  std::array<int16_t, 324> bytes{};
  bytes.fill(-1);
  size_t next = 256;
  for (int16_t b = 0; b < 256; ++b) {
    const bool visible = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    bytes[visible ? static_cast<size_t>(b) : next++] = b;
  }
  return bytes;
}
constexpr auto kByteOfCode = byte_of_code();

uint64_t hash_of(std::string_view text) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  uint64_t h = text.size() * kOdd;
  const auto mix = [&](uint64_t word) {
    const unsigned __int128 wide = static_cast<unsigned __int128>(h ^ word) * kOdd;
    h = static_cast<uint64_t>(wide) ^ static_cast<uint64_t>(wide >> 64);
  };
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    mix(word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, text.data() + i, text.size() - i);
  mix(rest);
  return h;
}

// "<0x41>" → 0x41
std::optional<uint8_t> named_byte(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const size_t digit = std::string_view("0123456789ABCDEF").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<int>(digit);
  }
  return static_cast<uint8_t>(value);
}

// Texts by which published models end a turn, whatever their files call eos.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",      "<|im_end|>",
    "<|end|>",         "<|return|>",
    "<|call|>",        "<|flush|>",
    "<|calls|>",       "<end_of_turn>",
    "<turn|>",         "<|endoftext|>",
    "<|eom_id|>",      "<EOT>",
    "_<EOT>",          "[EOT]",
    "[EOS]",           "</s>",
    "<|end_of_text|>", "<end_of_utterance>",
    "<eos>",           "<｜end▁of▁sentence｜>",
};

}  // namespace

void append_blanks(std::string& bytes, std::string_view text) {
  for (size_t at; (at = text.find(kBlankMark)) != text.npos; text.remove_prefix(at + kBlankMark.size())) {
    bytes += text.substr(0, at);
    bytes += ' ';
  }
  bytes += text;
}

bool append_byte_level(std::string& bytes, std::string_view spelled) {
  while (!spelled.empty()) {
    const Char c = first_char(spelled);
    if (c.state != Char::State::kValid) return false;
    if (c.code < kByteOfCode.size() && kByteOfCode[c.code] >= 0) {
      bytes += static_cast<char>(kByteOfCode[c.code]);
    } else {
      bytes += spelled.substr(0, c.size);
    }
    spelled.remove_prefix(c.size);
  }
  return true;
}

Vocabulary::Vocabulary(const VocabularySource& source, Spelling spelling, const Log& log) {
  if (source.tokens.empty()) fail(Code::kBadData, "[tokenizer] {} is empty", kTokens);
  if (source.tokens.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    fail(Code::kBadData, "[tokenizer] {} holds {} tokens, ids have 31 bits", kTokens, source.tokens.size());
  }
  if (source.scores && source.scores->size() != source.tokens.size()) {
    fail(Code::kBadData, "[tokenizer] tokenizer.ggml.scores holds {} numbers for {} tokens",
         source.scores->size(), source.tokens.size());
  }
  read_types(source);
  spell(source, spelling);
  read_special_ids(source, log);
  find_end_tokens(log);
  index(log);
  find_byte_tokens(source, spelling, log);
}

void Vocabulary::read_types(const VocabularySource& source) {
  types_.assign(source.tokens.size(), TokenType::kNormal);
  if (!source.types) return;
  if (source.types->size() != types_.size()) {
    fail(Code::kBadData, "[tokenizer] tokenizer.ggml.token_type holds {} numbers for {} tokens",
         source.types->size(), types_.size());
  }
  for (size_t i = 0; i < types_.size(); ++i) {
    const int32_t type = (*source.types)[i];
    if (type == 0) continue;  // "undefined": written by early converters for ordinary tokens
    if (type < 0 || type > static_cast<int32_t>(TokenType::kByte)) {
      fail(Code::kBadData, "[tokenizer] tokenizer.ggml.token_type of token {} is {}, known are 1 … 6", i,
           type);
    }
    types_[i] = static_cast<TokenType>(type);
  }
}

void Vocabulary::spell(const VocabularySource& source, Spelling spelling) {
  size_t total = 0;
  for (const std::string_view text : source.tokens) total += text.size();
  if (total > std::numeric_limits<uint32_t>::max()) {
    fail(Code::kBadData, "[tokenizer] {} holds {} bytes of text, more than 4 GiB", kTokens, total);
  }
  bytes_.reserve(total);
  starts_.reserve(types_.size() + 1);
  for (size_t i = 0; i < types_.size(); ++i) {
    starts_.push_back(static_cast<uint32_t>(bytes_.size()));
    const std::string_view text = source.tokens[i];
    const bool plain = types_[i] == TokenType::kNormal || types_[i] == TokenType::kUnused;
    bool readable = true;
    if (plain && spelling == Spelling::kByteLevel) {
      readable = append_byte_level(bytes_, text);
    } else if (!is_utf8(text)) {
      readable = false;
    } else if (types_[i] == TokenType::kByte && named_byte(text)) {
      bytes_ += static_cast<char>(*named_byte(text));
    } else if (spelling == Spelling::kSentencePiece && (plain || types_[i] == TokenType::kUserDefined)) {
      append_blanks(bytes_, text);
    } else {
      bytes_ += text;
    }
    if (!readable) fail(Code::kBadData, "[tokenizer] {}: token {} is not UTF-8", kTokens, i);
  }
  starts_.push_back(static_cast<uint32_t>(bytes_.size()));
}

std::string_view Vocabulary::piece(int32_t id) const {
  if (!has(id)) return {};
  const size_t i = static_cast<size_t>(id);
  return std::string_view(bytes_).substr(starts_[i], starts_[i + 1] - starts_[i]);
}

bool Vocabulary::is_control(int32_t id) const {
  return has(id) && (type(id) == TokenType::kControl || type(id) == TokenType::kUnknown);
}

// Where the bytes are, or belong.
size_t Vocabulary::find_slot(std::string_view bytes, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const uint32_t tag = static_cast<uint32_t>(hash >> 32);
  size_t at = hash & mask;
  while (slots_[at].id != kNoToken && (slots_[at].tag != tag || piece(slots_[at].id) != bytes))
    at = (at + 1) & mask;
  return at;
}

void Vocabulary::index(const Log& log) {
  slots_.assign(std::bit_ceil(types_.size() * 2 + 2), {});
  int32_t empty = 0, twice = 0, example = kNoToken;
  const auto mergeable = [this](int32_t id) { return !is_control(id) && type(id) != TokenType::kByte; };
  for (int32_t id = 0; id < size(); ++id) {
    if (piece(id).empty()) {
      ++empty, example = id;
    } else if (mergeable(id)) {
      longest_ = std::max(longest_, piece(id).size());
      const uint64_t hash = hash_of(piece(id));
      Slot& slot = slots_[find_slot(piece(id), hash)];
      if (slot.id != kNoToken) {
        ++twice, example = id;
      } else {
        slot = {static_cast<uint32_t>(hash >> 32), id};
      }
    }
  }
  std::vector<std::string_view> controls;
  for (int32_t id = 0; id < size(); ++id) {
    if (!is_control(id) || piece(id).empty()) continue;
    controls.push_back(piece(id));
    if (find(piece(id)) != kNoToken) ++twice, example = id;
  }
  std::sort(controls.begin(), controls.end());
  for (auto at = controls.begin(); (at = std::adjacent_find(at, controls.end())) != controls.end(); ++at)
    ++twice;
  if (empty + twice == 0) return;
  log.warn(
      "[tokenizer] {}: {} tokens are empty and {} equal another one (one is {}); text never becomes these",
      kTokens, empty, twice, example);
}

int32_t Vocabulary::find(std::string_view bytes) const { return slots_[find_slot(bytes, hash_of(bytes))].id; }

void Vocabulary::read_special_ids(const VocabularySource& source, const Log& log) {
  const auto checked = [&](const char* key, std::optional<uint32_t> id) -> std::optional<int32_t> {
    if (!id) return std::nullopt;
    if (*id == std::numeric_limits<uint32_t>::max()) {
      log.warn("[tokenizer] tokenizer.ggml.{}_token_id is all ones: read as none", key);
      return std::nullopt;
    }
    if (*id >= types_.size()) {
      fail(Code::kBadData, "[tokenizer] tokenizer.ggml.{}_token_id is {}, the vocabulary has {} tokens", key,
           *id, types_.size());
    }
    return static_cast<int32_t>(*id);
  };
  special_ = {checked("bos", source.bos), checked("eos", source.eos),     checked("eot", source.eot),
              checked("eom", source.eom), checked("unknown", source.unk), checked("padding", source.pad)};
}

// eos, eot, eom and the texts of kEndTexts. These tokens become control tokens, whatever the file calls them:
// text of a user must not end a reply. Gemma's "</s>" is a tag of HTML, hence that text counts only as a
// control token.
void Vocabulary::find_end_tokens(const Log& log) {
  bool call = false, returns = false;
  std::optional<int32_t> end;
  for (int32_t id = 0; id < size(); ++id) {
    const std::string_view text = piece(id);
    if (text.empty() || std::string_view("<[_").find(text[0]) == text.npos) continue;
    const auto known = std::find(std::begin(kEndTexts), std::end(kEndTexts), text);
    if (known == std::end(kEndTexts) || (text == "</s>" && !is_control(id))) continue;
    call |= text == "<|call|>";
    returns |= text == "<|return|>";
    if (text == "<|end|>") end = id;
    if (text == "<|eot_id|>" || text == "<|im_end|>" || text == "<end_of_turn>") {
      if (!special_.eot) special_.eot = id;
    }
    end_tokens_.push_back(id);
  }
  // Harmony ends each message by <|end|>, the turn by <|return|> or <|call|>.
  if (call && returns && end) std::erase(end_tokens_, *end);
  for (const auto& id : {special_.eos, special_.eot, special_.eom}) {
    if (id) end_tokens_.push_back(*id);
  }
  std::sort(end_tokens_.begin(), end_tokens_.end());
  end_tokens_.erase(std::unique(end_tokens_.begin(), end_tokens_.end()), end_tokens_.end());
  for (const int32_t id : end_tokens_) {
    if (!is_control(id)) {
      log.warn("[tokenizer] {}: token {} ends a reply but is not marked as a control token: it is one now",
               kTokens, id);
      types_[static_cast<size_t>(id)] = TokenType::kControl;
    }
  }
}

void Vocabulary::find_byte_tokens(const VocabularySource& source, Spelling spelling, const Log& log) {
  std::fill(std::begin(byte_tokens_), std::end(byte_tokens_), kNoToken);
  if (spelling == Spelling::kByteLevel) {
    for (int b = 0; b < 256; ++b) {
      const char byte = static_cast<char>(b);
      byte_tokens_[b] = find({&byte, 1});
    }
  } else {
    for (size_t i = 0; i < types_.size(); ++i) {
      const auto byte = named_byte(source.tokens[i]);
      if (types_[i] == TokenType::kByte && byte) byte_tokens_[*byte] = static_cast<int32_t>(i);
    }
  }
  const auto missing = std::count(std::begin(byte_tokens_), std::end(byte_tokens_), kNoToken);
  if (missing == 0) return;
  if (!special_.unk) {
    fail(Code::kBadData, "[tokenizer] {} lacks {} of the 256 bytes, and there is no unknown token", kTokens,
         missing);
  }
  if (spelling == Spelling::kByteLevel) {
    log.info("[tokenizer] {} lacks {} of the 256 bytes: they are dropped from text", kTokens, missing);
  }
}

}  // namespace juno::tokenizer
