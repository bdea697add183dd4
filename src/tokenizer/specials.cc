// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/specials.h"

#include <algorithm>

namespace juno::tokenizer {
namespace {

// Bounds the work at one position of a text; published ones have fewer than 64 bytes.
constexpr size_t kLongestSpecial = 512;

bool is_phi3(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return name.find("phi-3") != name.npos || name.find("phi3") != name.npos;
}

}  // namespace

Specials::Specials(const Vocabulary& vocabulary, std::string_view model_name, const Log& log) {
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const bool control = vocabulary.is_control(id);
    const std::string_view text = vocabulary.piece(id);
    if ((!control && vocabulary.type(id) != TokenType::kUserDefined) || text.empty()) continue;
    if (text.size() > kLongestSpecial) {
      log.info(
          "[tokenizer] tokenizer.ggml.tokens: special token {} has {} bytes: it is not looked for in text",
          id, text.size());
      continue;
    }
    entries_.push_back({text, id, control});
    begins_[static_cast<uint8_t>(text[0])] = true;
  }
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.text < b.text; });
  if (!is_phi3(std::string(model_name))) return;
  for (const Entry& e : entries_) {
    if (e.text != "<unk>" && e.text != "<s>" && e.text != "<|endoftext|>") strip_right_.push_back(e.id);
  }
  std::sort(strip_right_.begin(), strip_right_.end());
}

bool Specials::strips_right(int32_t id) const {
  return std::binary_search(strip_right_.begin(), strip_right_.end(), id);
}

// Each byte narrows the range of entries that the text may hold.
SpecialMatch Specials::longest_at(std::string_view text, size_t begin, size_t control_end) const {
  SpecialMatch match;
  auto low = entries_.begin(), high = entries_.end();
  for (size_t depth = 0; low != high && begin + depth < text.size(); ++depth) {
    const uint8_t byte = static_cast<uint8_t>(text[begin + depth]);
    const auto at_depth = [&](const Entry& e) { return static_cast<uint8_t>(e.text[depth]); };
    low = std::partition_point(low, high,
                               [&](const Entry& e) { return e.text.size() <= depth || at_depth(e) < byte; });
    high = std::partition_point(low, high, [&](const Entry& e) { return at_depth(e) == byte; });
    const size_t size = depth + 1;
    for (auto e = low; e != high && e->text.size() == size; ++e) {
      if (e->control && begin + size > control_end) continue;
      match = {e->id, begin, size};
      break;
    }
  }
  return match;
}

}  // namespace juno::tokenizer
