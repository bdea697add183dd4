// SPDX-License-Identifier: Apache-2.0
// A vocabulary and a text, both hostile. The input: a byte of switches, lines up to an empty one, the text. A
// line is a digit for the token's type and its text, or "m" and a merge.
#include "tokenizer/tokenizer.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/decoder.h"
#include "tokenizer/unicode.h"

using juno::tokenizer::Decoder;
using juno::tokenizer::Segment;
using juno::tokenizer::Tokenizer;
using juno::tokenizer::VocabularySource;

namespace {

enum Switches : uint8_t {
  kSentencePiece = 1,
  kNoUnknown = 2,
  kNoBlank = 4,
  kSqueeze = 8,
  kPhi3 = 16,
  kPre = 224
};
constexpr const char* kPres[] = {"gpt-2",   "llama-bpe", "qwen2",  "smollm",
                                 "default", "tekken",    "gpt-4o", "qwen35"};

void require(bool holds) {
  if (!holds) std::abort();
}

// The 256 bytes, as each kind of vocabulary spells them.
std::vector<std::string> byte_spellings(bool sentence_piece) {
  std::vector<std::string> all(256);
  char32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool visible = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    if (sentence_piece) {
      all[b] = std::string("<0x") + "0123456789ABCDEF"[b / 16] + "0123456789ABCDEF"[b % 16] + ">";
    } else {
      juno::append_utf8(all[b], visible ? static_cast<char32_t>(b) : next++);
    }
  }
  return all;
}

// Takes the lines off the front of `input`.
VocabularySource read_source(std::string_view& input, const std::vector<std::string>& bytes,
                             uint8_t switches) {
  const bool sentence_piece = switches & kSentencePiece;
  VocabularySource source;
  source.model = sentence_piece ? "llama" : "gpt2";
  source.pre = kPres[(switches & kPre) >> 5];
  source.name = switches & kPhi3 ? "phi-3" : "";
  source.tokens.assign(bytes.begin(), bytes.end());
  source.types.emplace(256, sentence_piece ? 6 : 1);
  source.merges.emplace();
  source.add_space_prefix = !(switches & kNoBlank);
  source.remove_extra_whitespaces = (switches & kSqueeze) != 0;
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size());
    const std::string_view line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    if (line.empty()) break;
    if (line[0] == 'm') {
      source.merges->push_back(line.substr(1));
    } else {
      source.tokens.push_back(line.substr(1));
      source.types->push_back(line[0] - '0');
    }
  }
  if (!(switches & kNoUnknown)) source.unk = 0;
  source.scores.emplace();
  for (size_t i = 0; i < source.tokens.size(); ++i) {
    source.scores->push_back(static_cast<float>((i * 2654435761u) % 7));
  }
  return source;
}

void check(const Tokenizer& tokenizer, std::string_view text, bool exact) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  Decoder decoder(tokenizer);
  std::string streamed;
  for (const int32_t id : ids) {
    require(tokenizer.piece(id).size() > 0);
    require(!tokenizer.is_control(id) || (tokenizer.special().unk && id == *tokenizer.special().unk));
    const std::string part = decoder.push(id);
    require(juno::is_utf8(part));
    streamed += part;
  }
  const std::string bytes = tokenizer.decode(ids);
  require(streamed + decoder.flush() == juno::tokenizer::to_utf8(bytes));
  if (exact) require(bytes == text);
  const Segment halves[] = {{std::string(text.substr(0, text.size() / 2)), true},
                            {std::string(text.substr(text.size() / 2)), false}};
  tokenizer.encode_segments(halves, {.add_special = true});
  tokenizer.encode(text, {.parse_special = true, .add_special = true});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t switches = data[0];
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> bytes = byte_spellings(switches & kSentencePiece);
  const VocabularySource source = read_source(input, bytes, switches);
  const auto tokenizer = Tokenizer::load(source, {});
  const bool exact = !(switches & (kSentencePiece | kPhi3));
  if (tokenizer) check(*tokenizer, input, exact);
  return 0;
}
