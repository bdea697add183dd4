// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pretokenizer.h"

#include <algorithm>

#include "tokenizer/unicode.h"

namespace juno::tokenizer {
namespace {

// 's 't 're …, before all else, or (kSuffix) in any case at the end of a word.
enum class Contractions { kNone, kLower, kAnyCase, kSuffix };
// What may stand before letters: a blank, or any one character but a letter, a number or a line end.
enum class Lead { kBlank, kAny };
// kCased: a word ends before a capital.
enum class Letters { kPlain, kWithMarks, kCased };
enum class Tail { kNone, kLineEnds, kLineEndsAndSlashes };

// The published patterns differ in these points only. In the order of the alternatives:
struct Rule {
  Contractions contractions;
  Lead lead;
  Letters letters;
  size_t digits;  // most numbers in a row; 0: any number of them, with a blank before
  Tail tail;      // what a run of symbols may end with
  bool lines;     // white space up to its last line end is a piece
};

struct At {
  Class kind;
  uint32_t size;
  char32_t code;
};

At at(std::string_view text, size_t i) {
  const Char c = first_char(text.substr(i));
  return {class_of(c.code), c.size, c.code};
}

bool is_line_end(char32_t c) { return c == '\r' || c == '\n'; }

template <class Wanted>
size_t run(std::string_view text, size_t i, Wanted wanted) {
  while (i < text.size()) {
    const At c = at(text, i);
    if (!wanted(c.kind)) break;
    i += c.size;
  }
  return i;
}

size_t contraction(std::string_view text, bool any_case) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const auto same = [&](size_t i, char letter) {
    return i < text.size() && (text[i] == letter || (any_case && text[i] == letter - 32));
  };
  for (const char letter : {'s', 't', 'm', 'd'}) {
    if (same(1, letter)) return 2;
  }
  for (const std::string_view two : {"re", "ve", "ll"}) {
    if (same(1, two[0]) && same(2, two[1])) return 3;
  }
  return 0;
}

bool is_upper(Class c) { return c == Class::kUpper || c == Class::kLetter || c == Class::kMark; }
bool is_lower(Class c) { return c == Class::kLower || c == Class::kLetter || c == Class::kMark; }

// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ from i: its end, or 0.
size_t capitals_then_small(std::string_view text, size_t i) {
  size_t shared = 0;  // the end of the last character that could be either
  while (i < text.size()) {
    const At c = at(text, i);
    if (!is_upper(c.kind)) break;
    i += c.size;
    if (is_lower(c.kind)) shared = i;
  }
  const size_t end = run(text, i, is_lower);
  return end > i ? end : shared;
}

// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]* from i: its end, or 0.
size_t capitals(std::string_view text, size_t i) {
  const size_t end = run(text, i, is_upper);
  return end > i ? run(text, end, is_lower) : 0;
}

// The first of the two that matches after the lead, or without it.
size_t cased_word(std::string_view text, size_t lead) {
  if (const size_t end = capitals_then_small(text, lead)) return end;
  if (const size_t end = lead ? capitals_then_small(text, 0) : 0) return end;
  if (const size_t end = capitals(text, lead)) return end;
  return lead ? capitals(text, 0) : 0;
}

template <Rule R>
bool in_word(Class c) {
  return is_letter(c) || (R.letters == Letters::kWithMarks && c == Class::kMark);
}

template <Rule R>
size_t letters(std::string_view text, const At& first) {
  size_t lead = 0;
  if (R.lead == Lead::kBlank) {
    lead = first.code == ' ';
  } else if (!is_letter(first.kind) && first.kind != Class::kNumber && !is_line_end(first.code)) {
    lead = first.size;
  }
  if constexpr (R.letters == Letters::kCased) {
    const size_t end = cased_word(text, lead);
    const bool suffix = end && R.contractions == Contractions::kSuffix;
    return suffix ? end + contraction(text.substr(end), true) : end;
  }
  size_t end = run(text, lead, in_word<R>);
  if (end == lead) end = run(text, 0, in_word<R>);
  return end;
}

template <Rule R>
size_t numbers(std::string_view text, const At& first) {
  const auto is_number = [](Class c) { return c == Class::kNumber; };
  if (R.digits == 0) {
    const size_t lead = first.code == ' ';
    const size_t end = run(text, lead, is_number);
    return end > lead ? end : 0;
  }
  size_t left = R.digits;
  return run(text, 0, [&](Class c) { return is_number(c) && left-- > 0; });
}

template <Rule R>
size_t symbols(std::string_view text, const At& first) {
  const size_t lead = first.code == ' ';
  size_t end =
      run(text, lead, [](Class c) { return !in_word<R>(c) && c != Class::kNumber && c != Class::kSpace; });
  if (end == lead) return 0;
  constexpr std::string_view kTails[] = {"", "\r\n", "\r\n/"};
  constexpr std::string_view tail = kTails[static_cast<size_t>(R.tail)];
  while (end < text.size() && tail.find(text[end]) != tail.npos) ++end;
  return end;
}

// White space. Its last character is left for the word that follows, unless it is all there is.
template <Rule R>
size_t blanks(std::string_view text) {
  size_t end = 0, last = 0, after_line = 0;
  while (end < text.size()) {
    const At c = at(text, end);
    if (c.kind != Class::kSpace) break;
    last = end;
    end += c.size;
    if (R.lines && is_line_end(c.code)) after_line = end;
  }
  if (after_line) return after_line;
  return end < text.size() && last > 0 ? last : end;
}

template <Rule R>
size_t word(std::string_view text) {
  if constexpr (R.contractions == Contractions::kLower || R.contractions == Contractions::kAnyCase) {
    if (const size_t n = contraction(text, R.contractions == Contractions::kAnyCase)) return n;
  }
  const At first = at(text, 0);
  if (const size_t n = letters<R>(text, first)) return n;
  if (const size_t n = numbers<R>(text, first)) return n;
  if (const size_t n = symbols<R>(text, first)) return n;
  if (const size_t n = blanks<R>(text)) return n;
  return first.size;
}

// A run of characters that are wanted, or a run of those that are not.
template <class Wanted>
size_t alternate(std::string_view text, Wanted wanted) {
  const bool first = wanted(at(text, 0));
  size_t i = 0;
  while (i < text.size()) {
    const At c = at(text, i);
    if (wanted(c) != first) break;
    i += c.size;
  }
  return i;
}

// \p{N}, each by itself
size_t single_number(std::string_view text) {
  const At first = at(text, 0);
  if (first.kind == Class::kNumber) return first.size;
  return alternate(text, [](const At& c) { return c.kind == Class::kNumber; });
}

// \p{N}+
size_t number_runs(std::string_view text) {
  return alternate(text, [](const At& c) { return c.kind == Class::kNumber; });
}

// [\p{P}\$\+<=>\^~\|]+
size_t punctuation_runs(std::string_view text) {
  return alternate(text, [](const At& c) {
    return c.kind == Class::kPunctuation ||
           (c.code < 128 &&
            std::string_view("$+<=>^~|").find(static_cast<char>(c.code)) != std::string_view::npos);
  });
}

// [0-9][0-9][0-9]
size_t three_digits(std::string_view text) {
  size_t digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    digits = text[i] >= '0' && text[i] <= '9' ? digits + 1 : 0;
    if (digits == 3) return i == 2 ? 3 : i - 2;
  }
  return text.size();
}

constexpr Rule kGpt2{Contractions::kLower, Lead::kBlank, Letters::kPlain, 0, Tail::kNone, false};
constexpr Rule kLlama3{Contractions::kAnyCase, Lead::kAny, Letters::kPlain, 3, Tail::kLineEnds, true};
constexpr Rule kQwen2{Contractions::kAnyCase, Lead::kAny, Letters::kPlain, 1, Tail::kLineEnds, true};
constexpr Rule kQwen35{Contractions::kAnyCase, Lead::kAny, Letters::kWithMarks, 1, Tail::kLineEnds, true};
constexpr Rule kTekken{Contractions::kNone, Lead::kAny, Letters::kCased, 1, Tail::kLineEndsAndSlashes, true};
constexpr Rule kGpt4o{Contractions::kSuffix, Lead::kAny, Letters::kCased, 3, Tail::kLineEndsAndSlashes, true};

constexpr Pretokenizer kList[] = {
    {"default", {punctuation_runs, word<kGpt2>, number_runs, three_digits}},
    {"gpt-2", {word<kGpt2>}},
    {"phi-2", {word<kGpt2>}},
    {"mpt", {word<kGpt2>}},
    {"olmo", {word<kGpt2>}},
    {"granite-docling", {word<kGpt2>}},
    {"smollm", {single_number, word<kGpt2>}},
    {"starcoder", {single_number, word<kGpt2>}},
    {"refact", {single_number, word<kGpt2>}},
    {"command-r", {single_number, word<kGpt2>}},
    {"llama-bpe", {word<kLlama3>}, true, true},
    {"llama3", {word<kLlama3>}, true, true},
    {"llama-v3", {word<kLlama3>}, true, true},
    {"falcon3", {word<kLlama3>}, true, true},
    {"smaug-bpe", {word<kLlama3>}},
    {"dbrx", {word<kLlama3>}},
    {"glm4", {word<kLlama3>}},
    {"chatglm-bpe", {word<kLlama3>}},
    {"qwen2", {word<kQwen2>}},
    {"deepseek-r1-qwen", {word<kQwen2>}},
    {"stablelm2", {word<kQwen2>}},
    {"qwen35", {word<kQwen35>}},
    {"tekken", {word<kTekken>}, true, true},
    {"gpt-4o", {word<kGpt4o>}},
    {"llama4", {word<kGpt4o>}},
};

}  // namespace

std::span<const Pretokenizer> pretokenizers() { return kList; }

const Pretokenizer* find_pretokenizer(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kList), std::end(kList), [&](const auto& p) { return p.name == name; });
  return found == std::end(kList) ? nullptr : found;
}

Words::Words(const Pretokenizer& scheme, std::string_view text) : scheme_(scheme) {
  while (stages_ < scheme.stages.size() && scheme.stages[stages_]) ++stages_;
  rest_[0] = text;
}

std::string_view Words::next() {
  size_t stage = stages_;
  while (stage > 0 && rest_[stage - 1].empty()) --stage;
  if (stage == 0) return {};
  for (;;) {
    std::string_view& rest = rest_[stage - 1];
    const std::string_view piece = rest.substr(0, scheme_.stages[stage - 1](rest));
    rest.remove_prefix(piece.size());
    if (stage == stages_) return piece;
    rest_[stage++] = piece;
  }
}

}  // namespace juno::tokenizer
