// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE: the text is cut into words, a word's bytes are merged by the file's list of merges.
#include <bit>

#include "tokenizer/pretokenizer.h"
#include "tokenizer/scheme.h"
#include "tokenizer/unicode.h"

namespace juno::tokenizer {
namespace {

// (left, right) → merge, by open addressing.
class MergeTable {
 public:
  explicit MergeTable(size_t merges) : slots_(std::bit_ceil(merges * 2 + 2)) {}

  // The first entry for a pair stays.
  void insert(int32_t left, int32_t right, Merge merge) {
    Slot& slot = slots_[find_slot(key_of(left, right))];
    if (slot.merge.rank == Merge::kNever) slot = {key_of(left, right), merge};
  }
  Merge find(int32_t left, int32_t right) const { return slots_[find_slot(key_of(left, right))].merge; }

 private:
  struct Slot {
    uint64_t key = 0;
    Merge merge;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t find_slot(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    uint64_t h = key * 0x9E3779B97F4A7C15;
    size_t at = (h ^ h >> 32) & mask;
    while (slots_[at].merge.rank != Merge::kNever && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  std::vector<Slot> slots_;
};

class Bpe final : public Scheme {
 public:
  Bpe(const VocabularySource& source, const Vocabulary& vocabulary, const Log& log)
      : vocabulary_(vocabulary),
        words_(choose(source, log)),
        table_(source.merges ? source.merges->size() : 0) {
    if (!source.merges) fail(Code::kBadData, "[tokenizer] the key tokenizer.ggml.merges is missing");
    read_merges(*source.merges, log);
    add_bos = source.add_bos.value_or(words_.add_bos);
    add_eos = source.add_eos.value_or(false);
  }

  void encode(std::string_view text, bool, Scratch& scratch, std::vector<int32_t>& ids) const override {
    Words words(words_, text);
    for (std::string_view word; !(word = words.next()).empty();) encode_word(word, scratch, ids);
  }

 private:
  static const Pretokenizer& choose(const VocabularySource& source, const Log& log) {
    if (!source.pre) {
      log.warn(
          "[tokenizer] the key tokenizer.ggml.pre is missing: text is cut as by \"default\", perhaps not as "
          "the model expects");
    }
    const std::string name = source.pre.value_or("default");
    if (const Pretokenizer* found = find_pretokenizer(name)) return *found;
    std::string known;
    for (const Pretokenizer& p : pretokenizers()) known += fmt::format(" {}", p.name);
    fail(Code::kBadData, "[tokenizer] tokenizer.ggml.pre: unknown pre-tokenizer \"{}\"; known are{}",
         to_utf8(name), known);
  }

  void read_merges(const std::vector<std::string_view>& merges, const Log& log) {
    std::string bytes;
    size_t unknown = 0, example = 0;
    for (size_t i = 0; i < merges.size(); ++i) {
      const std::string_view text = merges[i];
      const size_t blank = text.find(' ');
      const bool two_parts = blank != text.npos && blank > 0 && blank + 1 < text.size() &&
                             text.find(' ', blank + 1) == text.npos;
      bytes.clear();
      if (!two_parts || !append_byte_level(bytes, text.substr(0, blank))) bad_merge(i, text);
      const size_t left_size = bytes.size();
      if (!append_byte_level(bytes, text.substr(blank + 1))) bad_merge(i, text);
      const std::string_view both = bytes;
      const int32_t left = vocabulary_.find(both.substr(0, left_size));
      const int32_t right = vocabulary_.find(both.substr(left_size)), id = vocabulary_.find(both);
      if (left == kNoToken || right == kNoToken || id == kNoToken) {
        ++unknown, example = i;
      } else {
        table_.insert(left, right, {static_cast<uint32_t>(i), id});
      }
    }
    ranks_ = static_cast<uint32_t>(merges.size());
    if (unknown > 0) {
      log.warn(
          "[tokenizer] tokenizer.ggml.merges: {} merges join or make what is no token of the vocabulary (the "
          "last is {}: \"{}\"); "
          "they are skipped",
          unknown, example, to_utf8(merges[example]));
    }
  }

  [[noreturn]] static void bad_merge(size_t i, std::string_view text) {
    fail(Code::kBadData,
         "[tokenizer] tokenizer.ggml.merges: item {} is \"{}\", not two parts with a blank between", i,
         to_utf8(text.substr(0, 80)));
  }

  void encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
    if (words_.whole_words) {
      const int32_t id = vocabulary_.find(word);
      if (id != kNoToken) return ids.push_back(id);
    }
    scratch.symbols.clear();
    for (uint32_t i = 0; i < word.size(); ++i) {
      const int32_t id = vocabulary_.byte_token(static_cast<uint8_t>(word[i]));
      if (id != kNoToken) scratch.symbols.push_back({id, i, 1});
    }
    merge(scratch, ranks_, [this](const Symbol& a, const Symbol& b) { return table_.find(a.id, b.id); });
    for (const Symbol& symbol : scratch.symbols) ids.push_back(symbol.id);
  }

  const Vocabulary& vocabulary_;
  const Pretokenizer& words_;
  MergeTable table_;
  uint32_t ranks_ = 0;
};

}  // namespace

std::unique_ptr<Scheme> make_bpe(const VocabularySource& source, const Vocabulary& vocabulary,
                                 const Log& log) {
  return std::make_unique<Bpe>(source, vocabulary, log);
}

}  // namespace juno::tokenizer
